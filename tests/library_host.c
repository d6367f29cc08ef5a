/*
 * library_host.c - the machine, policies and images through libcarrel; only its public headers.
 *
 *     library_host DIRECTORY    an empty one: its JSON documents are left there
 *
 * tests/cli/library.bats builds and runs it. Ends with status 0 if all is as it should be.
 */
#include <carrel/carrel.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUSYBOX "/bin/busybox" /* a program that needs no other file */

static struct carrel_error err;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            (void)fprintf(                                                                     \
                    stderr, "library_host:%d: %s: %s\n", __LINE__, #condition, err.message);   \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

static int begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Leaves a document for tests/cli/library.bats, which parses it. */
static void leave(const char *path, char *json)
{
    CHECK(json);
    put(path, json);
    carrel_free(json);
}

/* ---- the machine ---- */

static void look_at_health(void)
{
    struct carrel_health *health = NULL;
    char *json = NULL;
    size_t n = 0;

    CHECK(carrel_host_health(&health, &err) == 0);
    CHECK(health->size == sizeof(*health));
    CHECK(health->caller == (geteuid() == 0 ? health->root : health->rootless));
    CHECK(health->caller->is_known && health->caller->is_able);
    CHECK(health->caller->uid == geteuid());
    CHECK(strcmp(health->caller->facts[0]->name, "kernel") == 0);
    CHECK(strcmp(health->caller->limits[0]->name, "memory") == 0);
    if (geteuid() != 0)
        CHECK(!health->root->is_known && health->root->error[0] && !health->root->limits[0]);
    for (; health->protections[n]; n++) {
        const struct carrel_health_protection *one = health->protections[n];
        CHECK(one->name[0] && one->meaning[0]);
        CHECK((geteuid() == 0 ? one->root : one->rootless) != CARREL_HEALTH_UNKNOWN);
    }
    CHECK(n > 20);
    for (n = 0; health->caller->gaps[n]; n++)
        CHECK(health->caller->gaps[n]->protections[0] && health->caller->gaps[n]->remedy[0]);
    CHECK(carrel_health_json(health, &json, &err) == 0);
    leave("health.json", json);
    carrel_health_free(health);
    carrel_health_free(NULL);
}

static int stop_at_third(const struct carrel_test_info *test, void *context)
{
    int *n = context;

    CHECK(test->outcome == CARREL_TEST_PASSED);
    CHECK(strcmp(test->group, "basics") == 0 && test->name[0] && test->seen[0]);
    return ++*n == 3 ? 42 : 0;
}

static void test_it(void)
{
    struct carrel_test_options options = CARREL_TEST_OPTIONS_INIT;
    int n = 0;

    CHECK(carrel_host_test(&options, stop_at_third, &n, &err) == 42);
    CHECK(n == 3);
    options.runtime = "proces";
    CHECK(carrel_host_test(&options, stop_at_third, &n, &err) == -EINVAL);
    CHECK(err.origin == CARREL_FROM_CALLER && strstr(err.message, "unknown runtime 'proces'"));
    options.size = 1;
    CHECK(carrel_host_test(&options, stop_at_third, &n, NULL) == -EINVAL);
    CHECK(n == 3);
}

static void clean_up(void)
{
    struct carrel_cleanup *cleanup = NULL;

    CHECK(carrel_host_cleanup(&cleanup, &err) == 0);
    CHECK(cleanup->size == sizeof(*cleanup));
    CHECK(strcmp(cleanup->runtimes[0]->name, "local") == 0 && !cleanup->runtimes[0]->error);
    CHECK(!cleanup->mended[0]);
    carrel_cleanup_free(cleanup);
    carrel_cleanup_free(NULL);
}

/* A program that is missing, or is not carrel, is an error and no answer. */
static void refuse_programs(void)
{
    struct carrel_health *health = NULL;

    CHECK(setenv("CARREL_PROGRAM", "/no/such/carrel", 1) == 0);
    CHECK(carrel_host_health(&health, &err) == -ENOPKG && !health);
    CHECK(strstr(err.message, "CARREL_PROGRAM is '/no/such/carrel'"));
    CHECK(setenv("CARREL_PROGRAM", "/bin/true", 1) == 0);
    CHECK(carrel_host_health(&health, &err) == -EIO && !health);
    CHECK(strstr(err.message, "different versions"));
    CHECK(unsetenv("CARREL_PROGRAM") == 0);
}

/* All of it was another process's: there is no child, and no variable of the self-test. */
static void is_unchanged(void)
{
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
    CHECK(!getenv("CARREL_TEST_MARK"));
}

/* ---- policies ---- */

static int count_file(const struct carrel_policy_file *file, void *context)
{
    int *n = context;

    *n += file->name[0] && strcmp(file->authority, "user") == 0 && file->gives_values;
    return 0;
}

static int count_key(const struct carrel_policy_key *key, void *context)
{
    int *n = context;

    CHECK(key->name[0] && (!key->value || key->value->from[0]));
    return ++*n == 10 ? 7 : 0;
}

static void ask_policy(const struct carrel_policy *policy, const char *file)
{
    const struct carrel_policy_key *key = NULL;
    int n = 0;

    CHECK(carrel_policy_key_get(policy, "sandbox.limits.memory", &key, &err) == 0);
    CHECK(!key->is_built_in && strcmp(key->value->text, "64M") == 0 && !key->value->list);
    CHECK(strcmp(key->value->name, file) == 0 && key->value->line == 3);
    CHECK(strcmp(key->value->authority, "user") == 0 && begins(key->value->from, file));
    CHECK(strcmp(key->maximum->text, "1G") == 0);
    CHECK(carrel_policy_key_get(policy, "sandbox.require", &key, &err) == 0);
    CHECK(!key->value->text && strcmp(key->value->list[0], "seccomp") == 0);
    CHECK(carrel_policy_key_get(policy, "sandbox.limits.pids", &key, &err) == 0);
    CHECK(key->is_built_in && !key->maximum && strcmp(key->value->from, "built in") == 0);
    CHECK(carrel_policy_key_get(policy, "sandbox.limits.memroy", &key, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_CALLER && strstr(err.message, "'sandbox.limits.memory'"));
    CHECK(carrel_policy_file_each(policy, count_file, &n, &err) == 0 && n == 1);
    n = 0;
    CHECK(carrel_policy_key_each(policy, count_key, &n, &err) == 7 && n == 10);
    CHECK(strlen(carrel_policy_hash(policy)) == 64);
}

static void load_policies(const char *top)
{
    struct carrel_policy_options options = CARREL_POLICY_OPTIONS_INIT;
    struct carrel_policy *policy = NULL;
    char path[4096];
    char *json = NULL;

    (void)snprintf(path, sizeof(path), "%s/good.yaml", top);
    put(path, "sandbox:\n"
              "  limits:\n"
              "    memory: {default: 64M, maximum: 1G}\n"
              "  require: [seccomp]\n");
    options.file = path;
    CHECK(carrel_policy_load(&options, &policy, &err) == 0);
    ask_policy(policy, path);
    CHECK(carrel_policy_json(policy, &json, &err) == 0);
    leave("policy.json", json);
    carrel_policy_free(policy);
    carrel_policy_free(NULL);
    options.profile = "none such";
    CHECK(carrel_policy_load(&options, &policy, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_POLICY);
    options.size = 1;
    CHECK(carrel_policy_load(&options, &policy, NULL) == -EINVAL);
}

static void check_policies(void)
{
    put("bad.yaml", "sandbox:\n  limits: {memroy: 1G}\n");
    CHECK(carrel_policy_check("bad.yaml", &err) == -EINVAL);
    CHECK(err.origin == CARREL_FROM_POLICY && strstr(err.message, "bad.yaml:2:"));
    CHECK(strstr(err.message, "did you mean 'memory'?"));
    CHECK(carrel_policy_check("none.yaml", &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_POLICY);
    CHECK(carrel_policy_check("none.yaml", NULL) == -ENOENT);
    put("template.yaml", carrel_policy_template());
    CHECK(carrel_policy_check("template.yaml", &err) == 0);
}

/* ---- images ---- */

/* A file of a tar archive: 512 bytes about it, then what is in it, in blocks of 512. */
static void add_file(FILE *tar, const char *name, const char *data, size_t len)
{
    char head[512] = { 0 };
    unsigned sum = 8 * ' ';

    (void)snprintf(head, 100, "%s", name);
    (void)snprintf(head + 100, 8, "%07o", 0755);
    (void)snprintf(head + 108, 8, "%07o", 0);
    (void)snprintf(head + 116, 8, "%07o", 0);
    (void)snprintf(head + 124, 12, "%011zo", len);
    (void)snprintf(head + 136, 12, "%011o", 0);
    head[156] = '0';
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof(head); i++)
        sum += i >= 148 && i < 156 ? 0 : (unsigned char)head[i];
    (void)snprintf(head + 148, 8, "%06o", sum);
    head[155] = ' ';
    CHECK(fwrite(head, 1, sizeof(head), tar) == sizeof(head));
    CHECK(fwrite(data, 1, len, tar) == len);
    for (; len % 512 != 0; len++)
        CHECK(fputc(0, tar) == 0);
}

static void make_tar(const char *path)
{
    static const char end[1024];
    struct stat st;
    FILE *program = fopen(BUSYBOX, "re");
    FILE *tar = fopen(path, "we");

    CHECK(program && tar && fstat(fileno(program), &st) == 0);
    char *data = malloc((size_t)st.st_size);
    CHECK(data && fread(data, 1, (size_t)st.st_size, program) == (size_t)st.st_size);
    add_file(tar, "bin/busybox", data, (size_t)st.st_size);
    add_file(tar, "etc/hello", "hello from the image\n", 21);
    CHECK(fwrite(end, 1, sizeof(end), tar) == sizeof(end));
    CHECK(fclose(tar) == 0 && fclose(program) == 0);
    free(data);
}

static void import_image(void)
{
    struct carrel_image_import_options options = CARREL_IMAGE_IMPORT_OPTIONS_INIT;
    struct carrel_image *image = NULL;

    options.source = "root.tar";
    CHECK(carrel_image_import(&options, &image, &err) == -EINVAL); /* without a name */
    options.name = "none";
    CHECK(carrel_image_import(&options, &image, &err) == -EINVAL);
    CHECK(err.origin == CARREL_FROM_CALLER);
    options.name = "small";
    CHECK(carrel_image_import(&options, &image, &err) == 0);
    const struct carrel_image_info *info = carrel_image_info(image);
    const struct carrel_image_imported *imported = carrel_image_imported(image);
    CHECK(strcmp(info->name, "small") == 0 && strcmp(info->kind, "tar") == 0);
    CHECK(info->n_layers == 1 && info->layers[0] && !info->layers[1] && !info->cmd[0]);
    CHECK(!imported->is_replaced && imported->n_shared == 0 && imported->bytes == info->bytes);
    carrel_image_free(image);

    options.source = "no such.tar";
    CHECK(carrel_image_import(&options, &image, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_CALLER);
    options.source = "bad.yaml"; /* no archive */
    CHECK(carrel_image_import(&options, &image, &err) < 0 && err.message[0]);
    options.size = 1;
    CHECK(carrel_image_import(&options, &image, NULL) == -EINVAL);
}

static void import_from_descriptor(void)
{
    struct carrel_image_import_options options = CARREL_IMAGE_IMPORT_OPTIONS_INIT;
    struct carrel_image *image = NULL;

    options.source_fd = open("root.tar", O_RDONLY | O_CLOEXEC);
    options.name = "small";
    CHECK(carrel_image_import(&options, &image, &err) == 0);
    CHECK(carrel_image_imported(image)->is_replaced);
    CHECK(strcmp(carrel_image_info(image)->source, "-") == 0);
    CHECK(fcntl(options.source_fd, F_GETFD) >= 0 && close(options.source_fd) == 0);
    carrel_image_free(image);
}

static int find_small(const struct carrel_image_info *info, void *context)
{
    char **json = context;

    if (strcmp(info->name, "small") != 0)
        return 0;
    CHECK(carrel_image_json(info, json, &err) == 0);
    return 1;
}

static void run_in_image(void)
{
    static const char *const argv[] = { BUSYBOX, "cat", "/etc/hello", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    size_t len;

    options.argv = argv;
    options.image = "small";
    CHECK(carrel_run(&options, &result, &err) == 0);
    CHECK(carrel_run_result_status(result) == 0);
    CHECK(strcmp(carrel_run_result_stdout(result, &len), "hello from the image\n") == 0);
    carrel_run_result_free(result);
}

static void use_image(void)
{
    struct carrel_image *image = NULL;
    char *json = NULL;

    CHECK(carrel_image_each(find_small, &json, &err) == 1);
    leave("image.json", json);
    CHECK(carrel_image_open("small", &image, &err) == 0);
    CHECK(!carrel_image_imported(image) && carrel_image_info(image)->created > 0);
    carrel_image_free(image);
    carrel_image_free(NULL);
    run_in_image();
    CHECK(carrel_image_remove("small", &err) == 0);
    CHECK(carrel_image_remove("small", &err) == -ENOENT && err.origin == CARREL_FROM_CALLER);
    CHECK(carrel_image_open("small", &image, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_CALLER);
    CHECK(carrel_image_each(find_small, &json, &err) == 0);
}

static void refuse_pulls(void)
{
    struct carrel_image_pull_options options = CARREL_IMAGE_PULL_OPTIONS_INIT;
    struct carrel_image *image = NULL;

    CHECK(carrel_image_pull(&options, &image, &err) == -EINVAL);
    options.reference = "oci:/tmp/layout";
    CHECK(carrel_image_pull(&options, &image, &err) == -EINVAL);
    CHECK(err.origin == CARREL_FROM_CALLER && strstr(err.message, "is not in a registry"));
    options.reference = "--help";
    CHECK(carrel_image_pull(&options, &image, &err) == -EINVAL);
    options.size = 1;
    CHECK(carrel_image_pull(&options, &image, NULL) == -EINVAL);
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) < 0)
        return 2;
    look_at_health();
    test_it();
    clean_up();
    refuse_programs();
    is_unchanged();
    load_policies(argv[1]);
    check_policies();
    make_tar("root.tar");
    import_image();
    import_from_descriptor();
    use_image();
    refuse_pulls();
    is_unchanged();
    (void)printf("0 failures\n");
    return 0;
}
