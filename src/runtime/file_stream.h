/*
 * file_stream.h - files of a sandbox as streams: the serving side; files.h has the other.
 *
 * For a runtime without CAN_DESCRIPTORS. Each function serves one stream to its end and waits
 * for its peer, so it runs in a process of its own, beside the files. It allocates nothing and
 * takes no lock, but for pack and unpack, which allocate. It returns 0 or a negative errno; the
 * caller closes both descriptors.
 *
 * The two ends are a pair of stream sockets, and the peer has one byte in its favour, the
 * receipt: the serving side takes it out when it has sent everything. A socket that is closed
 * with an unread byte resets its peer, so a stream that ended early, also because its server
 * was killed, does not look complete.
 */
#pragma once

/* The serving end, and the one for the caller. Negative errno. */
int file_stream_open(int *serving, int *theirs);

/* The content of a regular file, from its beginning. */
int file_stream_send(int file, int stream);

/*
 * Stores what comes until the peer ends the stream, and tells it the result. After a failure
 * the rest is read and dropped: a peer that still writes must not get a signal.
 */
int file_stream_take(int stream, int file);

/* The entries of a directory but "." and "..", as file_list_next() reads them. */
int file_stream_list(int dir, int stream);

/* The tar of FILE_PACK: of a directory, or of a file under the name `name`. */
int file_stream_pack(int fd, const char *name, int stream);

/* Unpacks what comes below `dir`, as FILE_UNPACK with these flags; else as the take. */
int file_stream_unpack(int stream, int dir, int flags);

/* Removes `name` in `dir` with its content, and tells the result. */
int file_stream_remove(int dir, const char *name, int stream);

/* A short text, all of it at once. */
int file_stream_text(const char *text, int stream);
