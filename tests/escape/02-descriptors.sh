# shellcheck shell=bash disable=SC2034,SC2154
bare() { me "$A/02-descriptors" leak "$A/02-descriptors" attack; }
prepare() { before=("$A/02-descriptors" leak); }
