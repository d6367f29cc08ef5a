# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Files that tools on the host obey automatically: they may be delivered, but must be reported.
paths=(.github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml .travis.yml Jenkinsfile azure-pipelines.yml
    .vscode/tasks.json .vscode/settings.json .idea/workspace.xml .envrc package.json Makefile
    .pre-commit-config.yaml .husky/pre-commit .githooks/pre-commit pyvenv.cfg setup.py conftest.py
    .gitattributes .gitmodules .lfsconfig .mcp.json CLAUDE.md AGENTS.md .cursor/rules/x .npmrc
    .devcontainer/devcontainer.json build.rs sub/Makefile sub/package.json .GitHub/Workflows/x.yml)
plant="
for path in ${paths[*]}; do
    mkdir -p \"\$(dirname \"\$path\")\"
    printf 'all:\n\t@%s/make\n' \"\$EVIL\" >\"\$path\"
done
"
trigger='make -s # $EVIL/make'
control() {
    inside control/1 -- "echo x >>a.txt; mkdir docs; echo x >docs/plain.md; echo x >src.c"
    same "an ordinary change" "" "$(carrel workspace show --json control/1 | tr ',' '\n' | grep -E '"sensitive":"')"
    carrel workspace discard --force control/1 >/dev/null
}
attack() {
    local shown path missing=()
    inside attack/1 -- "$plant"
    shown=$(carrel workspace show --json attack/1)
    for path in "${paths[@]}"; do
        flagged "$path" <<<"$shown" || missing+=("$path")
    done
    same "sensitive, but not flagged" "" "${missing[*]}"
    shown=$(carrel workspace show attack/1)
    grep -q "$(printf '%s' ".github/workflows/ci.yml")" <<<"$shown"
    carrel workspace apply attack/1 >"$T/.operation" 2>&1
    nothing_fired
    carrel workspace discard --force attack/1 >/dev/null
}
flagged() { tr '{' '\n' | grep -F "\"$1\"" | grep -q '"sensitive":"'; }
