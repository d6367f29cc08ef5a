/* asked.c - receives a question and passes it to the part that counts. */
#include "runtime/serving/asked.h"
#include "runtime/serving/filters.h"
#include "runtime/serving/netlink.h"
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* The call goes on as the program made it: the answer depends on no memory of the program. */
static void answer_filter(int listener, const struct seccomp_notif *request, unsigned *granted)
{
    struct seccomp_notif_resp answer = { .id = request->id, .error = filters_grant(granted) };

    if (answer.error == 0)
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* ENOENT: it no longer waits */
}

void asked_answer(int listener, struct asked *asked)
{
    struct seccomp_notif request = { 0 };

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return; /* it was interrupted, or has exited */
    if (request.data.nr == SYS_seccomp || request.data.nr == SYS_prctl)
        answer_filter(listener, &request, &asked->filters);
    else
        netlink_answer(listener, &request, asked->netlink_most);
}
