#include "base/buf.h"
#include "base/err.h"
#include "harness.h"
#include "image/manifest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define DIGEST(x) "\"digest\":\"sha256:" x "\""
#if defined(__x86_64__)
#define OURS "amd64"
#else
#define OURS "arm64"
#endif

static struct carrel_error err;
static struct arena arena;
static struct manifest manifest;
static struct manifest_choice choice;

static int choose(const char *text, const char *tag)
{
    return manifest_choose(&arena, text, strlen(text), tag, &choice, &err);
}

static int read_docker(const char *text, const char *tag)
{
    return manifest_read_docker(&arena, text, strlen(text), tag, &manifest, &err);
}

TEST(digests_are_of_one_kind)
{
    CHECK(manifest_is_digest("sha256:" A));
    CHECK(!manifest_is_digest("sha256:" A "a"));
    CHECK(!manifest_is_digest("sha512:" A));
    CHECK(!manifest_is_digest(A));
    CHECK(!manifest_is_digest("sha256:../../../etc/passwd"));
    CHECK(!manifest_is_digest(
            "sha256:AAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

TEST(the_only_image_is_meant)
{
    CHECK_EQ(choose("{\"manifests\":[{" DIGEST(A) "}]}", NULL), 0);
    CHECK_STR(choice.blob.path, "blobs/sha256/" A);
    CHECK_STR(choice.blob.sha256, A);
    CHECK_EQ(choice.kind, MANIFEST_IMAGE);
    arena_finish(arena);
}

TEST(of_several_the_one_for_this_machine_is_meant)
{
    CHECK_EQ(choose("{\"manifests\":["
                    "{" DIGEST(
                            A) ",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}},"
                               "{" DIGEST(B) ",\"platform\":{\"os\":\"linux\",\"architecture\":"
                                             "\"" OURS "\"}},"
                                             "{" DIGEST(C) ",\"platform\":{\"os\":\"windows\","
                                                           "\"architecture\":\"" OURS "\"}}"
                                                           "]}",
                     NULL),
            0);
    CHECK_STR(choice.blob.sha256, B);
    arena_finish(arena);
}

TEST(what_is_about_an_image_is_none)
{
    CHECK_EQ(choose("{\"manifests\":["
                    "{\"mediaType\":\"application/vnd.oci.image.index.v1+json\"," DIGEST(
                            A) "},"
                               "{" DIGEST(B) ",\"platform\":{\"os\":\"unknown\","
                                             "\"architecture\":\"unknown\"}},"
                                             "{" DIGEST(C) ",\"annotations\":{\"vnd.docker."
                                                           "reference.type\":\"attestation\"}}"
                                                           "]}",
                     NULL),
            0);
    CHECK_STR(choice.blob.sha256, A);
    CHECK_EQ(choice.kind, MANIFEST_INDEX);
    arena_finish(arena);
}

TEST(a_tag_says_which)
{
    static const char two[] =
            "{\"manifests\":["
            "{" DIGEST(A) ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"1\"}},"
                          "{" DIGEST(B) ",\"annotations\":{\"org.opencontainers.image.ref."
                                        "name\":\"2\","
                                        "\"io.containerd.image.name\":\"x:2\"}}]}";

    CHECK_EQ(choose(two, "2"), 0);
    CHECK_STR(choice.blob.sha256, B);
    CHECK_EQ(choose(two, "x:2"), 0);
    CHECK_STR(choice.blob.sha256, B);
    CHECK_EQ(choose(two, NULL), -EINVAL);
    CHECK_STR(err.message, "it has several images; say which with --tag: '1', '2'");
    CHECK_EQ(choose(two, "3"), -EINVAL);
    CHECK_STR(err.message, "it has no image '3'; there is: '1', '2'");
    arena_finish(arena);
}

TEST(an_index_of_nothing_is_refused)
{
    CHECK_EQ(choose("{}", NULL), -EINVAL);
    CHECK_EQ(choose("[]", NULL), -EINVAL);
    CHECK_EQ(choose("{\"manifests\":[]}", NULL), -EINVAL);
    CHECK_STR(err.message, "it has no image for linux/" OURS);
    CHECK_EQ(choose("{\"manifests\":[{}]}", NULL), -EINVAL);
    CHECK_EQ(choose("{\"manifests\":[{\"digest\":\"sha256:../x\"}]}", NULL), -EINVAL);
    CHECK_EQ(choose("{\"manifests\":[7]}", NULL), -EINVAL);
    arena_finish(arena);
}

TEST(a_manifest_names_a_config_and_layers)
{
    static const char text[] =
            "{\"config\":{" DIGEST(A) "},\"layers\":[{" DIGEST(B) "},{" DIGEST(C) "}]}";

    CHECK_EQ(manifest_read(&arena, text, strlen(text), &manifest, &err), 0);
    CHECK_STR(manifest.config.sha256, A);
    CHECK_EQ(manifest.n_layers, 2);
    CHECK_STR(manifest.layers[1].path, "blobs/sha256/" C);
    arena_finish(arena);
}

TEST(more_layers_than_there_may_be_are_refused)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    buf_add_str(&text, "{\"config\":{" DIGEST(A) "},\"layers\":[");
    for (int i = 0; i <= MANIFEST_MAX_LAYERS; i++)
        buf_addf(&text, "%s{" DIGEST(B) "}", i ? "," : "");
    buf_add_str(&text, "]}");
    CHECK_EQ(manifest_read(&arena, text.data, text.len, &manifest, &err), -EFBIG);
    arena_finish(arena);
}

TEST(a_docker_archive_lists_images)
{
    static const char one[] = "[{\"Config\":\"" A ".json\",\"RepoTags\":[\"x:1\"],"
                              "\"Layers\":[\"./l/layer.tar\",\"blobs/sha256/" B "\"]}]";

    CHECK(manifest_is_docker(one, strlen(one)));
    CHECK_EQ(read_docker(one, NULL), 0);
    CHECK_STR(manifest.config.path, A ".json");
    CHECK_STR(manifest.config.sha256, A);
    CHECK_STR(manifest.layers[0].path, "l/layer.tar");
    CHECK_STR(manifest.layers[0].sha256, "");
    CHECK_STR(manifest.layers[1].sha256, B);
    CHECK_EQ(read_docker(one, "x:1"), 0);
    CHECK_EQ(read_docker(one, "x:2"), -EINVAL);
    CHECK_EQ(read_docker("[{\"Config\":\"../x\",\"Layers\":[]}]", NULL), -EINVAL);
    CHECK_EQ(read_docker("[{\"Config\":\"x\",\"Layers\":[\"/etc/passwd\"]}]", NULL), -EINVAL);
    CHECK_EQ(read_docker("[{\"Config\":\"x\",\"Layers\":[\"a\\u0000b\"]}]", NULL), -EINVAL);
    CHECK(!manifest_is_docker("{}", 2));
    CHECK(!manifest_is_docker("[]", 2));
    CHECK(!manifest_is_docker("[1]", 3));
    arena_finish(arena);
}

static struct image_settings settings;
static const char *ids[2];

static int read_config(const char *config)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 16);

    buf_addf(&text,
            "{\"config\":%s,\"rootfs\":{\"diff_ids\":[\"sha256:" A "\",\"sha256:" B "\"]}}",
            config);
    return manifest_read_config(&arena, text.data, text.len, 2, &settings, ids, &err);
}

TEST(a_config_says_what_runs)
{
    CHECK_EQ(
            read_config("{\"Env\":[\"A=b\",\"C=\"],\"Entrypoint\":[\"e\"],\"Cmd\":[\"c\",\"\"],"
                        "\"WorkingDir\":\"/w\",\"User\":\"u:g\",\"Other\":7}"),
            0);
    CHECK_STR(settings.env[1], "C=");
    CHECK_EQ(settings.env[2] == NULL, 1);
    CHECK_STR(settings.entrypoint[0], "e");
    CHECK_STR(settings.cmd[1], "");
    CHECK_STR(settings.workdir, "/w");
    CHECK_STR(settings.user, "u:g");
    CHECK_STR(ids[0], A);
    CHECK_STR(ids[1], B);
    CHECK_EQ(read_config("{\"Env\":null,\"Cmd\":null,\"User\":null}"), 0);
    CHECK_EQ(settings.env[0] == NULL, 1);
    CHECK_STR(settings.user, "");
    CHECK_EQ(read_config("null"), 0);
    arena_finish(arena);
}

TEST(a_config_that_makes_no_sense_is_refused)
{
    static const char *const configs[] = { "{\"Env\":7}", "{\"Env\":[7]}", "{\"Env\":[\"x\"]}",
        "{\"Env\":[\"=x\"]}", "{\"Env\":[\"A=\\u0000\"]}", "{\"Cmd\":\"line\"}",
        "{\"WorkingDir\":\"relative\"}", "{\"User\":7}" };

    for (size_t i = 0; i < ARRAY_LEN(configs); i++)
        CHECK_EQ(read_config(configs[i]), -EINVAL);
    arena_finish(arena);
}

TEST(a_config_names_as_many_layers_as_the_manifest)
{
    static const char text[] = "{\"rootfs\":{\"diff_ids\":[\"sha256:" A "\"]}}";
    static const char none[] = "{\"rootfs\":{\"type\":\"layers\"}}";

    CHECK_EQ(
            manifest_read_config(&arena, text, strlen(text), 2, &settings, ids, &err), -EINVAL);
    CHECK_STR(err.message, "config: it names 1 layers, the manifest 2");
    CHECK_EQ(
            manifest_read_config(&arena, text, strlen(text), 0, &settings, ids, &err), -EINVAL);
    CHECK_EQ(
            manifest_read_config(&arena, none, strlen(none), 0, &settings, ids, &err), -EINVAL);
    CHECK_EQ(manifest_read_config(&arena, text, strlen(text), 1, &settings, ids, &err), 0);
    arena_finish(arena);
}
