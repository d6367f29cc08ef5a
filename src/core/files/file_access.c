/* file_access.c - the door of whoever made the sandbox. */
#include "core/files/file_access.h"
#include "base/err.h"

static int ask(struct file_door *door, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    return sandbox_file(door->box, request, answer, err);
}

struct file_door file_door_of(struct sandbox *box)
{
    static const struct file_door_ops ops = { .ask = ask };
    struct file_door door = FILE_DOOR_INIT;

    door.ops = &ops;
    door.box = box;
    return door;
}

int file_door_ask(struct file_door *door, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct file_request as_user = *request;

    if (!door->has_user)
        return door->ops->ask(door, request, answer, err);
    as_user.has_user = true;
    as_user.uid = door->uid;
    as_user.gid = door->gid;
    return door->ops->ask(door, &as_user, answer, err);
}

int file_door_wrote(struct file_door *door, uint64_t bytes, struct carrel_error *err)
{
    door->unasked_bytes += bytes;
    if (!door->ops->check_room || door->unasked_bytes < FILE_DOOR_BYTES)
        return 0;
    door->unasked_bytes = 0;
    return door->ops->check_room(door, err);
}

int file_door_outcome(struct file_door *door, int r, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    struct carrel_error own = { 0 };

    request.op = FILE_STAT; /* nobody is refused this one */
    request.path = "/";
    int alive = file_door_ask(door, &request, &answer, &own);
    if (alive == 0)
        return r;
    if (err)
        *err = own;
    return alive;
}

void file_door_close(struct file_door *door)
{
    if (door->ops && door->ops->close)
        door->ops->close(door);
    *door = FILE_DOOR_INIT;
}
