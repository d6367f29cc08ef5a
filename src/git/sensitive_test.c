#include "git/sensitive.h"
#include "harness.h"

TEST(what_runs_by_itself_is_found_anywhere_in_the_tree)
{
    CHECK_STR(sensitive_why(".husky/pre-commit"), "git hook directory");
    CHECK_STR(sensitive_why("web/.husky/_/husky.sh"), "git hook directory");
    CHECK_STR(sensitive_why("hooks/pre-push"), "git hook");
    CHECK_STR(sensitive_why("a/b/.gitattributes"),
            "git attributes (filters, merge and diff drivers)");
    CHECK_STR(sensitive_why(".github/workflows/ci.yml"), "CI workflow");
    CHECK_STR(sensitive_why("carrel.yaml"), "settings of carrel");
    CHECK_STR(sensitive_why("configs/profiles/default.yaml"), "settings of carrel");
    CHECK_STR(sensitive_why("package.json"), "package scripts");
    CHECK_STR(sensitive_why("sub/package.json"), "package scripts");
    CHECK_STR(sensitive_why("lib/python3.11/site-packages/x.pth"), "loaded by every Python");
    CHECK_STR(sensitive_why(".envrc"), "runs on entering the directory (direnv)");
    CHECK_STR(sensitive_why(".vscode/tasks.json"), "editor tasks and settings");
    CHECK_STR(sensitive_why("build.gradle.kts"), "build program");
    CHECK_STR(sensitive_why(".pre-commit-config.yaml"), "git hook manager");
    CHECK_STR(sensitive_why(".cursor/rules/x.md"), "settings of agents");
    CHECK_STR(sensitive_why("docs/AGENTS.md"), "instructions for agents");
}

TEST(case_does_not_hide_a_name)
{
    CHECK_STR(sensitive_why("PACKAGE.JSON"), "package scripts");
    CHECK_STR(sensitive_why(".GitHub/Workflows/x.YML"), "CI workflow");
    CHECK_STR(sensitive_why("Makefile"), "build commands");
    CHECK_STR(sensitive_why("GNUmakefile"), "build commands");
    CHECK_STR(sensitive_why("Claude.md"), "instructions for agents");
}

TEST(names_that_only_look_alike_are_not_reported)
{
    CHECK_STR(sensitive_why("src/main.c"), NULL);
    CHECK_STR(sensitive_why("mypackage.json"), NULL);
    CHECK_STR(sensitive_why("package.json.md"), NULL);
    CHECK_STR(sensitive_why("package.json/readme"), NULL);
    CHECK_STR(sensitive_why("hooks/use-state.ts"), NULL);
    CHECK_STR(sensitive_why("src/hooks/prefix.ts"), NULL);
    CHECK_STR(sensitive_why(".husky"), NULL); /* a file, where the tool wants a directory */
    CHECK_STR(sensitive_why("x.husky/a"), NULL);
    CHECK_STR(sensitive_why("a.mkd"), NULL);
    CHECK_STR(sensitive_why("makefiles/readme"), NULL);
    CHECK_STR(sensitive_why(""), NULL);
    CHECK_STR(sensitive_why("/"), NULL);
}

TEST(a_star_stays_within_its_component)
{
    CHECK_STR(sensitive_why("jenkinsfile.release"), "CI workflow");
    CHECK_STR(sensitive_why("jenkinsfile.d/notes"), NULL);
    CHECK_STR(sensitive_why("azure-pipelines-a.yml.b.yaml"), "CI workflow");
    CHECK_STR(sensitive_why("x/.mk"), "build commands");
}
