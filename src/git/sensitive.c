/* sensitive.c - the table of paths that a reviewer must look at first. */
#include "git/sensitive.h"
#include "base/auto.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/*
 * A pattern matches at the end of a path, from the start of any component, ignoring case: "a/b"
 * matches in the root and in every directory. A '*' matches any bytes except '/'. A '/' at the
 * end names a directory and everything below it.
 *
 * The table lists files that a tool on the reviewer's machine or in CI executes or reads as
 * instructions when the tree merely exists, is entered, opened, built, tested or installed by
 * its usual command. It does not list source code as such, nor files that are only run by name.
 */
static const struct {
    char pattern[32]; /* no pointers: they would be relocated in every process */
    char why[52];
} table[] = {
    /* git itself */
    { ".husky/", "git hook directory" },
    { ".githooks/", "git hook directory" },
    { ".git-hooks/", "git hook directory" },
    { "githooks/", "git hook directory" },
    { "git-hooks/", "git hook directory" },
    { ".hooks/", "git hook directory" },
    { "hooks/applypatch-msg", "git hook" },
    { "hooks/commit-msg", "git hook" },
    { "hooks/fsmonitor-watchman", "git hook" },
    { "hooks/post-*", "git hook" },
    { "hooks/pre-*", "git hook" },
    { "hooks/prepare-commit-msg", "git hook" },
    { "hooks/push-to-checkout", "git hook" },
    { "hooks/update", "git hook" },
    { ".gitattributes", "git attributes (filters, merge and diff drivers)" },
    { ".gitmodules", "git submodules (fetched from elsewhere)" },
    { ".gitconfig", "git configuration" },
    { ".lfsconfig", "git LFS server" },
    { ".pre-commit-config.y*ml", "git hook manager" },
    { "lefthook*.y*ml", "git hook manager" },
    { ".lefthook*.y*ml", "git hook manager" },
    { "lefthook*.toml", "git hook manager" },
    { "lefthook*.json", "git hook manager" },
    { ".lefthook/", "git hook manager" },
    { ".overcommit.yml", "git hook manager" },
    { ".huskyrc*", "git hook manager" },
    { ".lintstagedrc*", "git hook manager" },
    { "lint-staged.config.*", "git hook manager" },

    /* shells and version managers: on entering the directory */
    { ".envrc", "runs on entering the directory (direnv)" },
    { ".env", "environment of programs" },
    { ".env.*", "environment of programs" },
    { ".mise.toml", "tool manager, obeyed on entering the directory" },
    { "mise.toml", "tool manager, obeyed on entering the directory" },
    { ".mise/", "tool manager, obeyed on entering the directory" },
    { ".tool-versions", "tool manager, obeyed on entering the directory" },
    { ".nvmrc", "tool manager, obeyed on entering the directory" },
    { ".autoenv*", "runs on entering the directory (autoenv)" },
    { "shell.nix", "development shell" },
    { "flake.nix", "development shell" },
    { "devenv.nix", "development shell" },
    { ".tmuxinator.yml", "terminal session commands" },

    /* editors: on opening the folder */
    { ".vscode/", "editor tasks and settings" },
    { "*.code-workspace", "editor tasks and settings" },
    { ".idea/", "editor tasks and settings" },
    { ".run/*.run.xml", "editor run configuration" },
    { ".fleet/", "editor tasks and settings" },
    { ".zed/", "editor tasks and settings" },
    { ".vs/", "editor tasks and settings" },
    { "*.sublime-project", "editor tasks and settings" },
    { ".exrc", "editor commands" },
    { ".nvimrc", "editor commands" },
    { ".nvim.lua", "editor commands" },
    { ".vimrc", "editor commands" },
    { ".lvimrc", "editor commands" },
    { ".dir-locals*.el", "editor commands" },
    { ".gdbinit", "debugger commands" },
    { ".lldbinit", "debugger commands" },
    { ".devcontainer/", "development container" },
    { ".devcontainer.json", "development container" },
    { "devcontainer.json", "development container" },
    { ".gitpod.yml", "development container" },
    { "devfile.y*ml", "development container" },

    /* agents: instructions and tools for the next one */
    { "claude.md", "instructions for agents" },
    { "claude.local.md", "instructions for agents" },
    { "agents.md", "instructions for agents" },
    { "agent.md", "instructions for agents" },
    { "gemini.md", "instructions for agents" },
    { "copilot-instructions.md", "instructions for agents" },
    { ".github/instructions/", "instructions for agents" },
    { ".github/prompts/", "instructions for agents" },
    { ".cursorrules", "instructions for agents" },
    { ".windsurfrules", "instructions for agents" },
    { ".clinerules", "instructions for agents" },
    { ".clinerules/", "instructions for agents" },
    { ".aider*", "settings of agents" },
    { ".cursor/", "settings of agents" },
    { ".claude/", "settings of agents" },
    { ".codex/", "settings of agents" },
    { ".gemini/", "settings of agents" },
    { ".agents/", "settings of agents" },
    { ".windsurf/", "settings of agents" },
    { ".roo/", "settings of agents" },
    { ".continue/", "settings of agents" },
    { ".kiro/", "settings of agents" },
    { "opencode.json*", "settings of agents" },
    { ".opencode/", "settings of agents" },
    { ".mcp.json", "tool servers for agents" },
    { "mcp.json", "tool servers for agents" },
    { ".carrel/", "settings of carrel" },
    { "carrel.y*ml", "settings of carrel" },
    { "configs/profiles/default.yaml", "settings of carrel" },
    { ".worktreeinclude", "ignored files that a run receives" },

    /* CI */
    { ".github/workflows/", "CI workflow" },
    { ".github/actions/", "CI workflow" },
    { "action.y*ml", "CI action" },
    { ".github/dependabot.y*ml", "CI configuration" },
    { ".github/codeowners", "who must review" },
    { "codeowners", "who must review" },
    { ".gitlab-ci*.y*ml", "CI workflow" },
    { ".gitlab/", "CI workflow" },
    { ".gitea/", "CI workflow" },
    { ".forgejo/", "CI workflow" },
    { "jenkinsfile*", "CI workflow" },
    { ".circleci/", "CI workflow" },
    { "azure-pipelines*.y*ml", "CI workflow" },
    { ".azure-pipelines/", "CI workflow" },
    { ".travis.yml", "CI workflow" },
    { ".drone.y*ml", "CI workflow" },
    { ".woodpecker*.y*ml", "CI workflow" },
    { ".woodpecker/", "CI workflow" },
    { "bitbucket-pipelines.yml", "CI workflow" },
    { ".buildkite/", "CI workflow" },
    { ".semaphore/", "CI workflow" },
    { ".teamcity/", "CI workflow" },
    { "appveyor.yml", "CI workflow" },
    { ".appveyor.yml", "CI workflow" },
    { ".cirrus.y*ml", "CI workflow" },
    { "cloudbuild.y*ml", "CI workflow" },
    { "buildspec.y*ml", "CI workflow" },
    { ".builds/", "CI workflow" },
    { ".readthedocs.y*ml", "CI workflow" },
    { "renovate.json*", "CI configuration" },
    { "netlify.toml", "CI workflow" },
    { "vercel.json", "CI workflow" },

    /* builds, tests and packages: by their usual command */
    { "package.json", "package scripts" },
    { "package.json5", "package scripts" },
    { "package.yaml", "package scripts" },
    { ".npmrc", "package manager settings" },
    { ".yarnrc*", "package manager settings" },
    { ".yarn/", "package manager program" },
    { ".pnpmfile.cjs", "package manager hook" },
    { "pnpm-workspace.yaml", "package manager settings" },
    { "bunfig.toml", "package manager settings" },
    { "deno.json*", "package scripts" },
    { "makefile*", "build commands" },
    { "gnumakefile", "build commands" },
    { "*.mk", "build commands" },
    { "justfile", "build commands" },
    { ".justfile", "build commands" },
    { "*.just", "build commands" },
    { "taskfile*.y*ml", "build commands" },
    { "rakefile*", "build commands" },
    { "*.rake", "build commands" },
    { "gemfile", "package manager program" },
    { ".bundle/config", "package manager settings" },
    { "*.gemspec", "package manager program" },
    { ".rspec", "test settings" },
    { "setup.py", "package build program" },
    { "setup.cfg", "package build settings" },
    { "pyproject.toml", "package build settings" },
    { "pip.conf", "package manager settings" },
    { "uv.toml", "package manager settings" },
    { "noxfile.py", "test program" },
    { "tox.ini", "test commands" },
    { "conftest.py", "test program, loaded automatically" },
    { "pytest.ini", "test settings" },
    { "pyvenv.cfg", "Python environment" },
    { "sitecustomize.py", "loaded by every Python" },
    { "usercustomize.py", "loaded by every Python" },
    { "*.pth", "loaded by every Python" },
    { ".cargo/config", "build settings" },
    { ".cargo/config.toml", "build settings" },
    { "build.rs", "build program" },
    { "rust-toolchain*", "compiler that is fetched and run" },
    { ".bazelrc", "build settings" },
    { "bazelrc", "build settings" },
    { ".bazelversion", "build tool that is fetched and run" },
    { "build.bazel", "build commands" },
    { "*.bzl", "build commands" },
    { "workspace.bazel", "build commands" },
    { "module.bazel", "build commands" },
    { "gradlew", "build program" },
    { "gradlew.bat", "build program" },
    { "gradle/wrapper/", "build program" },
    { "gradle.properties", "build settings" },
    { "build.gradle*", "build program" },
    { "settings.gradle*", "build program" },
    { "init.gradle*", "build program" },
    { "*.gradle", "build program" },
    { "mvnw", "build program" },
    { "mvnw.cmd", "build program" },
    { ".mvn/", "build program" },
    { "pom.xml", "build plugins" },
    { "build.xml", "build commands" },
    { "build.sbt", "build program" },
    { "project/*.sbt", "build program" },
    { "cmakelists.txt", "build commands" },
    { "*.cmake", "build commands" },
    { "cmakepresets.json", "build settings" },
    { "cmakeuserpresets.json", "build settings" },
    { "meson.build", "build commands" },
    { "configure", "build program" },
    { "configure.ac", "build program" },
    { "configure.in", "build program" },
    { "autogen.sh", "build program" },
    { "sconstruct", "build program" },
    { "sconscript", "build program" },
    { "wscript", "build program" },
    { "build.zig", "build program" },
    { "package.swift", "build program" },
    { "podfile", "package manager program" },
    { "mix.exs", "build program" },
    { "composer.json", "package scripts" },
    { "directory.build.*", "build commands" },
    { "*.csproj", "build commands" },
    { "*.vcxproj", "build commands" },
    { "nuget.config", "package manager settings" },
    { "build.cake", "build program" },
    { "procfile*", "commands of a process manager" },
    { "vagrantfile", "machine description, a program" },
    { "docker-compose*.y*ml", "containers and what they mount" },
    { "compose.y*ml", "containers and what they mount" },
    { "compose.override.y*ml", "containers and what they mount" },

    /* tool configuration that is a program, or names one */
    { ".eslintrc*", "linter settings, may be a program" },
    { "eslint.config.*", "linter settings, a program" },
    { ".prettierrc*", "formatter settings, may be a program" },
    { "prettier.config.*", "formatter settings, a program" },
    { ".babelrc*", "compiler settings, may be a program" },
    { "babel.config.*", "compiler settings, a program" },
    { "jest.config.*", "test settings, a program" },
    { "vitest.config.*", "test settings, a program" },
    { "vite.config.*", "build settings, a program" },
    { "webpack.config.*", "build settings, a program" },
    { "rollup.config.*", "build settings, a program" },
    { "next.config.*", "build settings, a program" },
    { "gulpfile.*", "build program" },
    { "gruntfile.*", "build program" },
    { "playwright.config.*", "test settings, a program" },
    { ".mocharc*", "test settings, may be a program" },
    { ".pylintrc", "linter settings, may load a program" },
    { "pylintrc", "linter settings, may load a program" },
    { ".rubocop.yml", "linter settings, may load a program" },
    { ".golangci.y*ml", "linter settings" },
    { ".clangd", "compiler settings of editors" },
    { "compile_commands.json", "compiler commands of editors" },
    { ".watchmanconfig", "file watcher settings" },
    { ".bashrc", "shell start-up file" },
    { ".profile", "shell start-up file" },
    { ".bash_profile", "shell start-up file" },
    { ".zshrc", "shell start-up file" },
    { ".zshenv", "shell start-up file" },
    { ".desktop", "desktop entry" },
    { "*.desktop", "desktop entry" },
    { "desktop.ini", "desktop entry" },
    { "autorun.inf", "desktop entry" },
};

static char fold(char c)
{
    return (char)tolower((unsigned char)c);
}

/* Whether `path` matches the pattern from here on. Backtracking to the last star is enough. */
static bool matches_here(const char *pattern, const char *path)
{
    const char *star = NULL;
    const char *retry = NULL;

    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = path;
        } else if (*pattern == '/' && pattern[1] == '\0') {
            if (*path == '/')
                return true;
            goto again;
        } else if (*pattern == '\0' && *path == '\0') {
            return true;
        } else if (*pattern != '\0' && fold(*path) == *pattern) {
            pattern++;
            path++;
        } else {
            goto again;
        }
        continue;
    again:
        if (!star || *retry == '\0' || *retry == '/')
            return false;
        path = ++retry;
        pattern = star;
    }
}

const char *sensitive_why(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        for (size_t i = 0; i < ARRAY_LEN(table); i++)
            if (matches_here(table[i].pattern, at))
                return table[i].why;
    }
    return NULL;
}
