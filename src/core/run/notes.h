/* notes.h - what the caller is told of things that they did not name, and a run may have left.
 */
#pragma once

struct session;

/* Adds to the note of the result: the policy that was found, filters that were left off, files
 * that were carried along, objects from elsewhere. */
void notes_add(struct session *session);
