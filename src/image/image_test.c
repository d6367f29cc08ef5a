#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "harness.h"
#include "image/image.h"
#include "image/import_layer.h"
#include "image/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;
static char state[] = "/tmp/image-test-XXXXXX";
static struct image_store store = IMAGE_STORE_INIT;

static void begin(void)
{
    CHECK(test_mkdtemp(state));
    CHECK_EQ(image_store_make(state, &store, &err), 0);
}

/* A layer of that letter, in the store; not held. */
static void make_layer(char letter)
{
    struct import_layer layer;

    fd_close(import_layer_begin(&store, &layer, &err));
    memset(layer.id, letter, STORE_ID_LEN);
    layer.bytes = 7;
    CHECK_EQ(import_layer_done(&layer, &err), 0);
    CHECK_EQ(import_layer_settle(&store, &layer, &err), 0);
    CHECK_EQ(layer.bytes, 7);
    store_drop(&store.layers, &layer.draft);
}

static const char *id_of(char letter)
{
    static char ids[3][STORE_ID_LEN + 1];
    char *id = ids[letter - 'a'];

    memset(id, letter, STORE_ID_LEN);
    return id;
}

static void make_image(const char *name, const char *letters)
{
    AUTO(image_free) struct image *image = image_record_new();
    const char *layers[4] = { NULL };

    CHECK(image);
    for (size_t i = 0; letters[i]; i++)
        layers[image->n_layers++] = id_of(letters[i]);
    image->name = name;
    image->layers = layers;
    CHECK_EQ(image_record_save(&store, image, &err), 0);
}

static int is_there(char letter)
{
    return faccessat(store.layers.top, id_of(letter), F_OK, 0) == 0;
}

TEST(names_are_names_of_files)
{
    static const char *const good[] = { "a", "9", "debian", "docker.io/library/x:1.2_3-4",
        "localhost:5000/a@sha256:00" };
    static const char *const bad[] = { "", ".", "..", ".x", "/x", "-x", "a b", "a\n", "a%2F",
        "none", "\xc5\x91" };
    char file[STORE_FILE_MAX];
    char name[IMAGE_NAME_MAX + 1];
    char longest[IMAGE_NAME_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(image_is_name(good[i]));
        image_store_file_name(good[i], file);
        CHECK(!strchr(file, '/'));
        CHECK(image_store_name_of_file(file, name));
        CHECK_STR(name, good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!image_is_name(bad[i]));
    memset(longest, 'x', sizeof(longest));
    longest[IMAGE_NAME_MAX + 1] = '\0';
    CHECK(!image_is_name(longest));
    longest[IMAGE_NAME_MAX] = '\0';
    CHECK(image_is_name(longest));
    CHECK(!image_store_name_of_file("layers", name));
    CHECK(!image_store_name_of_file(".json", name));
    CHECK(!image_store_name_of_file("a%2.json", name));
    CHECK(!image_store_name_of_file("%2Fa.json", name));
}

TEST(a_record_says_what_was_written)
{
    AUTO(image_free) struct image *back = NULL;
    AUTO(image_free) struct image *image = image_record_new();
    const char *layers[] = { id_of('a'), id_of('b'), NULL };
    const char *env[] = { "A=b\n\"", NULL };

    begin();
    image->name = "x/y:1";
    image->kind = "oci";
    image->source = "/some where";
    image->digest = "sha256:0";
    image->created = 5;
    image->bytes = UINT64_MAX / 4;
    image->layers = layers;
    image->n_layers = 2;
    image->settings.env = env;
    image->settings.workdir = "/w";
    CHECK_EQ(image_record_save(&store, image, &err), 0);
    CHECK_EQ(image_read(state, "x/y:1", &back, &err), 0);
    CHECK_STR(back->name, "x/y:1");
    CHECK_STR(back->source, "/some where");
    CHECK_EQ(back->bytes, UINT64_MAX / 4);
    CHECK_EQ(back->n_layers, 2);
    CHECK_STR(back->layers[1], id_of('b'));
    CHECK_STR(back->settings.env[0], "A=b\n\"");
    CHECK_STR(back->settings.workdir, "/w");
    CHECK_EQ(image_read(state, "other", &back, &err), -ENOENT);
    CHECK_STR(err.message, "there is no image 'other'");
}

TEST(layers_that_an_image_names_stay)
{
    begin();
    make_layer('a');
    make_layer('b');
    make_layer('c');
    make_image("x", "ab");
    make_image("y", "b");
    CHECK_EQ(image_sweep(state, &err), 1);
    CHECK(is_there('a') && is_there('b') && !is_there('c'));
    CHECK_EQ(image_remove(state, "x", &err), 0);
    CHECK(!is_there('a') && is_there('b'));
    CHECK_EQ(image_remove(state, "x", &err), -ENOENT);
    CHECK_EQ(image_remove(state, "y", &err), 0);
    CHECK(!is_there('b'));
    CHECK_EQ(image_sweep(state, &err), 0);
}

TEST(layers_that_are_held_stay)
{
    AUTO(image_free) struct image *image = NULL;

    begin();
    make_layer('a');
    make_image("x", "a");
    CHECK_EQ(image_open(state, "x", &image, &err), 0);
    CHECK(strstr(image->trees[0], id_of('a')));
    struct stat st;
    CHECK_EQ(stat(image->trees[0], &st), 0);
    CHECK_EQ(image_remove(state, "x", &err), 0);
    CHECK(is_there('a'));
    image_free(ptr_steal(&image));
    CHECK_EQ(image_sweep(state, &err), 1);
    CHECK(!is_there('a'));
}

TEST(a_pin_knows_an_image_from_another_of_its_name)
{
    AUTO(image_free) struct image *image = NULL;
    AUTO(image_free) struct image *again = NULL;
    char pin[IMAGE_PIN_MAX];

    begin();
    make_layer('a');
    make_layer('b');
    make_image("x/y:1", "a");
    CHECK_EQ(image_open(state, "x/y:1", &image, &err), 0);
    memcpy(pin, image->pin, sizeof(pin));
    CHECK(image_pin_is_of(pin, "x/y:1"));
    CHECK(!image_pin_is_of(pin, "x/y"));
    CHECK(!image_pin_is_of("x/y:1", "x/y:1"));
    CHECK(!image_is_name(pin));
    CHECK_EQ(image_open(state, pin, &again, &err), 0);
    CHECK_STR(again->name, "x/y:1");
    make_image("x/y:1", "ab");
    image_free(ptr_steal(&again));
    CHECK_EQ(image_open(state, pin, &again, &err), -ESTALE);
    CHECK_EQ(image_remove(state, pin, &err), -EINVAL);
    make_image("x/y:1", "a");
    CHECK_EQ(image_open(state, pin, &again, &err), 0);
    CHECK_EQ(image_read(state, "x/z@0123456789abcdef", &again, &err), -ENOENT);
}

TEST(an_image_without_its_layer_is_told)
{
    AUTO(image_free) struct image *image = NULL;

    begin();
    make_layer('a');
    make_image("x", "ab");
    CHECK_EQ(image_open(state, "x", &image, &err), -ENOENT);
    CHECK_STR(err.message, "image 'x': layer bbbbbbbbbbbb: No such file or directory");
}

TEST(a_record_that_cannot_be_read_keeps_all_layers)
{
    begin();
    make_layer('a');
    AUTO(fd_close) int fd = openat(store.top, "bad.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQ(fd_write_all(fd, "{", 1), 0);
    CHECK_EQ(image_sweep(state, &err), -EINVAL);
    CHECK(is_there('a'));
}

/* Two that make the same layer at once: the second takes the first one's. */
TEST(a_layer_that_is_there_already_is_taken)
{
    struct import_layer layer;

    begin();
    fd_close(import_layer_begin(&store, &layer, &err));
    memset(layer.id, 'a', STORE_ID_LEN);
    layer.bytes = 9;
    CHECK_EQ(import_layer_done(&layer, &err), 0);
    make_layer('a');
    CHECK_EQ(import_layer_settle(&store, &layer, &err), 0);
    CHECK_EQ(layer.bytes, 7);
    CHECK(layer.draft.dir >= 0 && !layer.draft.path);
    CHECK_EQ(image_sweep(state, &err), 0); /* held */
    CHECK(is_there('a'));
    store_drop(&store.layers, &layer.draft);
    CHECK_EQ(image_sweep(state, &err), 1);
}

static int add_name(const struct image *image, void *arg)
{
    strcat(arg, image->name);
    strcat(arg, " ");
    return 0;
}

TEST(images_are_listed_by_name)
{
    char names[100] = "";

    CHECK_EQ(image_list("/nonexistent", add_name, names, &err), 0);
    begin();
    make_image("c", "a");
    make_image("a/b:1", "a");
    make_image("b", "a");
    CHECK_EQ(image_list(state, add_name, names, &err), 0);
    CHECK_STR(names, "a/b:1 b c ");
}
