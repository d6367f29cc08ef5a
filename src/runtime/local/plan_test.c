#include "base/err.h"
#include "harness.h"
#include "runtime/local/host.h"
#include "runtime/local/plan.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <string.h>

static char usr[] = "usr";
static char bin[] = "bin";
static char bin_link[] = "usr/bin";
static char cache[] = "etc/ld.so.cache";
static char no_dns[] = "";
static char no_counts[] = "cpu  0 0 0 0\n";
static struct host_entry entries[] = {
    { .path = usr, .kind = ENTRY_DIR },
    { .path = bin, .kind = ENTRY_LINK, .link = bin_link },
    { .path = cache, .kind = ENTRY_FILE },
};

static struct host host_of(uid_t uid)
{
    return (struct host){
        .uid = uid,
        .gid = uid,
        .is_root = uid == 0,
        .landlock = 4,
        .entries = entries,
        .n_entries = ARRAY_LEN(entries),
        .proc_masks = ~UINT64_C(0),
        .resolv_conf = no_dns,
        .proc_stat = no_counts,
    };
}

static struct sandbox_spec spec_of(void)
{
    return (struct sandbox_spec){
        .id = "t",
        .limits.value = { 512U << 20, 256, 1000, 1U << 30, 4096 },
    };
}

static struct plan *make(const struct sandbox_spec *spec, const struct host *host)
{
    struct carrel_error err = { 0 };
    struct plan *plan = NULL;

    if (plan_make(spec, host, &plan, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return plan;
}

/* Position of the step, or -1. */
static int find(const struct plan *plan, enum step_kind kind, const char *path)
{
    for (size_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == kind && strcmp(plan->steps[i].path, path) == 0)
            return (int)i;
    return -1;
}

static const char *content(const struct plan *plan, const char *path)
{
    int i = find(plan, STEP_FILE, path);

    CHECK(i >= 0);
    return plan->steps[i].source;
}

static void refused(
        const struct sandbox_spec *spec, const struct host *host, const char *message)
{
    struct carrel_error err = { 0 };
    struct plan *plan = NULL;

    CHECK(plan_make(spec, host, &plan, &err) < 0);
    CHECK_STR(err.message, message);
}

TEST(roots_programs_are_nobody_of_the_host)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    CHECK(plan->has_range);
    CHECK(plan->is_init_apart);
    CHECK_EQ(plan->init_uid, 0);
    CHECK_EQ(plan->uid, 1000);
    CHECK_STR(plan->user_name, "agent");
}

TEST(programs_are_started_by_what_is_left_of_a_plan)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    plan_add_rlimit(plan, RLIMIT_NOFILE, 77);
    size_t n = plan->n_rlimits;
    plan_forget_steps(plan);
    CHECK(!plan->steps && plan->n_steps == 0 && !plan->sources && !plan->texts);
    CHECK(plan->has_range);
    CHECK_EQ(plan->init_uid, 0);
    CHECK_EQ(plan->uid, 1000);
    CHECK_STR(plan->user_name, "agent");
    CHECK_EQ(plan->n_rlimits, n);
    CHECK_EQ(plan->rlimits[n - 1].value, 77U);
}

TEST(an_ordinary_user_stays_who_they_are)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(4711);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    CHECK(!plan->has_range);
    CHECK(!plan->is_init_apart);
    CHECK_EQ(plan->uid, 4711);
    CHECK_EQ(plan->init_uid, 4711);
    CHECK(strstr(content(plan, "etc/passwd"), "agent:x:4711:4711:"));
}

/*
 * The caller's files belong to its own id; init has another one as soon as these are mounted.
 */
TEST(an_ordinary_user_with_subordinate_ids_has_an_init_apart)
{
    struct host host = host_of(1234);
    struct sandbox_spec spec = spec_of();

    host.has_subids = true;
    host.subids = (struct subids){ 100000, 200000 };
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    CHECK(plan->has_range && plan->has_subids && !plan_is_of_root(plan));
    CHECK_EQ(plan->uid, 1234U);
    CHECK_EQ(plan->maker_uid, 1234U);
    CHECK_EQ(plan->maker_gid, 1234U);
    CHECK_EQ(plan->init_uid, 0U);
    CHECK(plan->is_init_apart);
    CHECK(!plan->shares_skeleton);
    CHECK_EQ(plan->subids.gid, 200000U);

    spec.has_user = true; /* another id inside for the same host id, also beyond the range */
    spec.uid = spec.gid = 70000;
    AUTO(plan_free) struct plan *other = make(&spec, &host);
    CHECK_EQ(other->maker_uid, 70000U);
    spec.uid = spec.gid = 0;
    AUTO(plan_free) struct plan *zero = make(&spec, &host);
    CHECK(!zero->is_init_apart);
}

TEST(root_without_its_capabilities_is_refused)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    host.is_root = false;
    refused(&spec, &host,
            "root without CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID cannot map ids away from "
            "itself; give carrel these capabilities or run it as an ordinary user");
}

TEST(the_root_of_a_container_is_an_ordinary_user)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    host.is_root = false;
    host.is_nested = true;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    CHECK(!plan->has_range);
    CHECK_EQ(plan->uid, 0);
}

TEST(an_id_outside_the_range_is_refused)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.has_user = true;
    spec.uid = 65536;
    refused(&spec, &host, "user 65536:0: ids in a sandbox range from 0 to 65535");
}

TEST(the_hosts_entries_are_shown_as_they_are)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    CHECK(find(plan, STEP_DIR, "usr") >= 0);
    CHECK_EQ(find(plan, STEP_BIND, "usr"), find(plan, STEP_DIR, "usr") + 1);
    CHECK_STR(plan->steps[find(plan, STEP_BIND, "usr")].source, "/usr");
    CHECK_STR(plan->steps[find(plan, STEP_LINK, "bin")].source, "usr/bin");
    CHECK_EQ(find(plan, STEP_BIND, "bin"), -1);
    CHECK_STR(content(plan, "etc/ld.so.cache"), "");
}

TEST(nothing_of_the_host_is_bound_but_what_was_found)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    size_t binds = 0;

    for (size_t i = 0; i < plan->n_steps; i++)
        binds += plan->steps[i].kind == STEP_BIND;
    CHECK_EQ(binds, 2); /* usr and the cache */
}

TEST(every_parent_directory_comes_before_its_children)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    for (size_t i = 0; i < plan->n_steps; i++) {
        char parent[256];
        (void)strcpy(parent, plan->steps[i].path);
        char *slash = strrchr(parent, '/');
        if (!slash)
            continue;
        *slash = '\0';
        int at = find(plan, STEP_DIR, parent);
        CHECK(at >= 0);
        CHECK(at < (int)i);
    }
}

TEST(dev_holds_harmless_devices_only)
{
    static const char *const allowed[] = { "dev/null", "dev/zero", "dev/full", "dev/random",
        "dev/urandom", "dev/tty" };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    size_t devices = 0;

    for (size_t i = 0; i < plan->n_steps; i++)
        devices += plan->steps[i].kind == STEP_DEVICE;
    CHECK_EQ(devices, ARRAY_LEN(allowed));
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK(find(plan, STEP_DEVICE, allowed[i]) >= 0);
}

TEST(proc_is_mounted_before_it_is_masked)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    int proc = find(plan, STEP_PROC, "proc");

    CHECK(proc >= 0);
    CHECK(find(plan, STEP_MASK, "proc/kcore") > proc);
    CHECK(find(plan, STEP_MASK, "proc/sysrq-trigger") > proc);
    CHECK(find(plan, STEP_MASK_DIR, "proc/acpi") > proc);
    CHECK(find(plan, STEP_MASK, "proc/locks") > proc);
    CHECK_STR(plan->steps[find(plan, STEP_COVER, "proc/stat")].source, no_counts);
    CHECK_EQ(plan->steps[find(plan, STEP_COVER, "proc/kmsg")].mode, 0);
    CHECK(find(plan, STEP_READ_ONLY, "proc/sys") > proc);

    host.proc_masks = 0;
    AUTO(plan_free) struct plan *bare = make(&spec, &host);
    CHECK_EQ(find(bare, STEP_MASK, "proc/kcore"), -1);
}

TEST(without_a_network_there_is_no_resolver)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    CHECK(plan->has_netns);
    CHECK_STR(content(plan, "etc/resolv.conf"), "");
    spec.network = NETWORK_HOST;
    AUTO(plan_free) struct plan *open = make(&spec, &host);
    CHECK(!open->has_netns);
}

TEST(another_root_keeps_its_own_etc)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.root = "/images/x";
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    CHECK_STR(plan->steps[find(plan, STEP_BIND, "usr")].source, "/images/x/usr");
    CHECK_EQ(find(plan, STEP_FILE, "etc/passwd"), -1);
    CHECK(find(plan, STEP_COVER, "etc/resolv.conf") >= 0);
}

TEST(an_overlay_is_one_step_with_its_layers_as_sources)
{
    const char *const lower[] = { "/cache/setup", "/cache/tree", NULL };
    const struct sandbox_overlay overlay = {
        .lower = lower, .space = "/state/run", .upper = "upper", .work = "work"
    };
    const struct sandbox_mount mounts[] = {
        { .target = "/workspace", .access = ACCESS_READ_WRITE, .overlay = &overlay },
        { .source = "/cache/tree/.git", .target = "/workspace/.git" },
    };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.mounts = mounts;
    spec.n_mounts = 2;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    const struct plan_mount *mount =
            &plan->mounts[plan->steps[find(plan, STEP_OVERLAY, "workspace")].index];
    CHECK_EQ(mount->n_lower, 2);
    CHECK_STR(plan->sources[mount->source].path, "/cache/setup");
    CHECK_STR(plan->sources[mount->source + 1].path, "/cache/tree");
    CHECK(!plan->sources[mount->source + 1].is_writable);
    CHECK_STR(plan->sources[mount->source + 2].path, "/state/run");
    CHECK(plan->sources[mount->source + 2].is_writable);
    CHECK(find(plan, STEP_MOUNT, "workspace/.git") > find(plan, STEP_OVERLAY, "workspace"));
}

static uint64_t file_size_limit(const struct sandbox_spec *spec)
{
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *plan = make(spec, &host);

    for (size_t i = 0; i < plan->n_rlimits; i++)
        if (plan->rlimits[i].resource == RLIMIT_FSIZE)
            return plan->rlimits[i].value;
    return 0;
}

TEST(in_an_overlay_no_file_becomes_larger_than_the_disk_limit_that_was_asked_for)
{
    const char *const lower[] = { "/cache/tree", NULL };
    const struct sandbox_overlay overlay = {
        .lower = lower, .space = "/state/run", .upper = "upper", .work = "work"
    };
    struct sandbox_mount mounts[] = {
        { .target = "/workspace", .access = ACCESS_READ_WRITE, .overlay = &overlay },
        { .source = "/data", .target = "/data" },
    };
    struct sandbox_spec spec = spec_of();

    spec.limits.value[LIMIT_DISK] = 64U << 20;
    spec.limits.demanded = LIMIT_BIT(LIMIT_DISK);
    CHECK_EQ(file_size_limit(&spec), 0); /* the private space is limited as a whole */
    spec.mounts = mounts;
    spec.n_mounts = 2;
    CHECK_EQ(file_size_limit(&spec), 64U << 20);
    spec.limits.demanded = 0;
    CHECK_EQ(file_size_limit(&spec), 0);
    spec.limits.demanded = LIMIT_BIT(LIMIT_DISK);
    mounts[1].access = ACCESS_READ_WRITE; /* there the limit does not apply */
    CHECK_EQ(file_size_limit(&spec), 0);
}

/* Whether two plans have the same skeleton. */
static bool share(const struct plan *a, const struct plan *b)
{
    size_t j = 0;

    for (size_t i = 0; i < a->n_steps; i++) {
        if (!step_is_skeleton(a->steps[i].kind))
            continue;
        while (j < b->n_steps && !step_is_skeleton(b->steps[j].kind))
            j++;
        if (j == b->n_steps || strcmp(a->steps[i].path, b->steps[j].path) != 0)
            return false;
        j++;
    }
    while (j < b->n_steps && !step_is_skeleton(b->steps[j].kind))
        j++;
    return j == b->n_steps;
}

TEST(places_on_disk_are_the_programs_own_and_nothing_else)
{
    static const char *const kept[] = { "tmp", "home/agent", "workspace" };
    const char *const none[] = { NULL };
    const struct sandbox_overlay space = {
        .lower = none, .space = "/layer", .upper = "upper", .work = "work"
    };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);
    AUTO(plan_free) struct plan *before = make(&spec, &host);
    spec.space = &space;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        CHECK(find(plan, STEP_KEPT, kept[i]) >= 0);
        CHECK_EQ(find(plan, STEP_SPACE, kept[i]), -1);
    }
    CHECK(find(plan, STEP_SPACE, "run") >= 0);
    CHECK(find(plan, STEP_SPACE, "dev/shm") >= 0);
    CHECK_EQ(plan->disk.n_lower, 0);
    CHECK_EQ(plan->n_sources, 1);
    CHECK_STR(plan->sources[plan->disk.source].path, "/layer");
    CHECK(plan->sources[plan->disk.source].is_writable);
    CHECK(plan->shares_skeleton);
    CHECK(share(plan, before)); /* one for both */
}

TEST(a_root_on_disk_has_its_directories_before_anything_is_mounted)
{
    const char *const lower[] = { "/image", NULL };
    const struct sandbox_overlay root = {
        .lower = lower, .space = "/layer", .upper = "upper", .work = "work"
    };
    struct sandbox_spec spec = spec_of();
    spec.root_overlay = &root;
    struct host host = host_of(0);
    host.n_entries = 0;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    int last = -1;

    for (size_t i = 0; i < plan->n_steps; i++) {
        enum step_kind kind = plan->steps[i].kind;
        CHECK(kind != STEP_BIND && kind != STEP_KEPT);
        if (kind == STEP_POINT || kind == STEP_ENSURE) {
            CHECK_EQ((int)i, last + 1);
            last = (int)i;
        }
        if (step_is_skeleton(kind))
            CHECK_EQ(strncmp(plan->steps[i].path, "dev", 3), 0);
    }
    CHECK(find(plan, STEP_POINT, "proc") < find(plan, STEP_PROC, "proc"));
    CHECK(find(plan, STEP_DEV, "dev") < find(plan, STEP_DEVICE, "dev/null"));
    CHECK(find(plan, STEP_COVER, "etc/hosts") >= 0);
    CHECK_EQ(find(plan, STEP_COVER, "etc/passwd"), -1);
    CHECK_STR(plan->writable[0], "/");
    CHECK(!plan->writable[1]);
    CHECK(plan->shares_skeleton);
}

TEST(as_many_layers_as_one_option_can_name)
{
    const char *lower[PLAN_MAX_LOWER + 2] = { NULL };
    const struct sandbox_overlay root = {
        .lower = lower, .space = "/layer", .upper = "upper", .work = "work"
    };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(1000);
    struct plan *plan = NULL;
    struct carrel_error err = { 0 };

    for (size_t i = 0; i < PLAN_MAX_LOWER; i++)
        lower[i] = "/image";
    spec.root_overlay = &root;
    plan_free(make(&spec, &host));
    lower[PLAN_MAX_LOWER] = "/image";
    CHECK_EQ(plan_make(&spec, &host, &plan, &err), -E2BIG);
}

TEST(mounts_come_last_and_outer_ones_first)
{
    const struct sandbox_mount mounts[] = {
        { .source = "/src/deep", .target = "/data/a/b", .access = ACCESS_READ_ONLY },
        { .source = "/src/top", .target = "/data", .access = ACCESS_READ_WRITE },
    };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.mounts = mounts;
    spec.n_mounts = 2;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    int top = find(plan, STEP_MOUNT, "data");
    CHECK_EQ(top, (int)plan->n_steps - 2);
    CHECK_EQ(find(plan, STEP_MOUNT, "data/a/b"), top + 1);
    CHECK_STR(plan->sources[plan->mounts[plan->steps[top].index].source].path, "/src/top");
    CHECK(plan->mounts[plan->steps[top].index].is_writable);
    CHECK(!plan->mounts[plan->steps[top + 1].index].is_writable);

    bool has_data = false;
    for (const char **at = plan->writable; *at; at++) {
        has_data = has_data || strcmp(*at, "/data") == 0;
        CHECK(strcmp(*at, "/data/a/b") != 0);
        CHECK(strcmp(*at, "/") != 0 && strcmp(*at, "/etc") != 0 && strcmp(*at, "/usr") != 0);
    }
    CHECK(has_data);
}

static bool shares_with(const char *target, uid_t uid)
{
    const struct sandbox_mount mount = { .source = "/src", .target = target };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(uid);

    spec.mounts = &mount;
    spec.n_mounts = target ? 1 : 0;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    return plan->shares_skeleton;
}

TEST(a_skeleton_is_shared_when_every_mount_has_its_place_in_it)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    CHECK(shares_with(NULL, 0));
    CHECK(shares_with("/workspace", 0));
    CHECK(shares_with("/tmp/a/b", 0));
    CHECK(!shares_with("/data", 0));
    CHECK(!shares_with("/home", 0));
    CHECK(!shares_with("/tmpfile", 0));
    CHECK(!shares_with(NULL, 4711)); /* another process of the user could change it */
    spec.root = "/images/x";
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    CHECK(!plan->shares_skeleton);
}

static void refuse_target(const char *target, const char *message)
{
    const struct sandbox_mount mount = { .source = "/src", .target = target };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.mounts = &mount;
    spec.n_mounts = 1;
    refused(&spec, &host, message);
}

TEST(a_target_that_is_the_sandboxs_own_is_refused)
{
    refuse_target("/proc", "mount target '/proc' is reserved: /proc is the sandbox's own");
    refuse_target(
            "/proc/sys", "mount target '/proc/sys' is reserved: /proc is the sandbox's own");
    refuse_target("/dev/sda", "mount target '/dev/sda' is reserved: /dev is the sandbox's own");
    refuse_target("/", "mount target '/' is the root itself; use --root");
    refuse_target(
            "data", "mount target 'data' is not an absolute path without '.', '..' and '//'");
    refuse_target("/a/../proc",
            "mount target '/a/../proc' is not an absolute path without '.', '..' and '//'");
}

TEST(two_mounts_on_one_target_are_refused)
{
    const struct sandbox_mount mounts[] = {
        { .source = "/a", .target = "/workspace", .access = ACCESS_READ_ONLY },
        { .source = "/b", .target = "/workspace", .access = ACCESS_READ_ONLY },
    };
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.mounts = mounts;
    spec.n_mounts = 2;
    refused(&spec, &host, "two mounts have the target '/workspace'");
}

TEST(the_disk_limit_is_what_the_program_gets)
{
    struct sandbox_spec spec = spec_of();
    struct host host = host_of(0);

    spec.limits.value[LIMIT_DISK] = 64U << 20;
    AUTO(plan_free) struct plan *plan = make(&spec, &host);
    CHECK_STR(plan->space_bytes, "67371008"); /* and 256K for the skeleton */
    CHECK_STR(plan->space_inodes, "8448");
}
