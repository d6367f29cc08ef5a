/* apparmor_test.c - the advice on machines made up. */
#include "harness.h"
#include "runtime/local/apparmor.h"
#include "runtime/local/installed.h"
#include <string.h>

TEST(the_profile_is_loaded_where_it_is_in_place)
{
    char text[APPARMOR_REMEDY_MAX];

    apparmor_advise(INSTALLED_PROGRAM, true, text);
    CHECK_STR(text, "as root: apparmor_parser -r /etc/apparmor.d/carrel");
}

TEST(the_profile_is_copied_from_this_installation_first)
{
    char text[APPARMOR_REMEDY_MAX];

    apparmor_advise(INSTALLED_PROGRAM, false, text);
    CHECK_STR(text, "as root: install -m 644 " INSTALLED_PROFILE " /etc/apparmor.d/carrel && "
                    "apparmor_parser -r /etc/apparmor.d/carrel");
}

TEST(another_program_is_told_that_the_profile_is_not_for_it)
{
    char text[APPARMOR_REMEDY_MAX];

    for (int is_loadable = 0; is_loadable < 2; is_loadable++) {
        apparmor_advise("/usr/bin/python3.11", is_loadable, text);
        CHECK_STR(text, "run " INSTALLED_PROGRAM
                        " (make install): the AppArmor profile of carrel is for "
                        "that path only; /usr/bin/python3.11 needs one of its own");
    }
}
