/*
 * protocol.h - the protocol between a job and its supervisor, berth-run.
 *
 * A UNIX stream socket, named by BERTH_SOCKET; lines of text.  The job sends
 *
 *     hello 1              first, once per connection
 *     total 10000          total number of steps, at least 1
 *     report 120 0.693     step, loss; '-' without a loss
 *     saved 100            a checkpoint up to this step is on disk
 *     rate 3.5             steps per second, where the job knows better than the clock
 *
 * and berth-run sends
 *
 *     stop 60              save and exit; the job is killed after this many seconds
 *
 * when the job is preempted, and at once to ranks that connect later.  Either side
 * ignores words it does not know, so that new ones can be added; a line longer than
 * PROTOCOL_LINE_MAX ends the connection.  Numbers are as in C's "%.9g", with a point in
 * every locale.
 */
#pragma once

#define PROTOCOL_ENV_SOCKET "BERTH_SOCKET"
#define PROTOCOL_ENV_FILE "BERTH_PREEMPT_FILE"

#define PROTOCOL_LINE_MAX 256       /* with its line end */
#define PROTOCOL_CONNECTIONS_MAX 64 /* of one job: its ranks */

#define PROTOCOL_HELLO "hello"
#define PROTOCOL_REPORT "report"
#define PROTOCOL_TOTAL "total"
#define PROTOCOL_SAVED "saved"
#define PROTOCOL_RATE "rate"
#define PROTOCOL_STOP "stop"
#define PROTOCOL_NO_LOSS "-"
