/*
 * protocol.h - the words between a job and the berth-run that owns it.
 *
 * A UNIX stream socket, named by BERTH_SOCKET; lines of text.  The job says
 *
 *     hello 1              first, once per connection
 *     total 10000          steps there will be in all, at least 1
 *     report 120 0.693     step, loss; '-' for a loss that is not there
 *     saved 100            a checkpoint up to this step is on disk
 *     rate 3.5             steps per second, where the job knows better than the clock
 *
 * and berth-run says
 *
 *     stop 60              leave; this many seconds until the end is made for you
 *
 * once that is so, at once to whoever connects later.  Either side ignores words it does
 * not know, so that new ones can come; a line longer than PROTOCOL_LINE_MAX ends the
 * connection.  Numbers are as in C's "%.9g", with a point whatever the language.
 */
#pragma once

#define PROTOCOL_ENV_SOCKET "BERTH_SOCKET"
#define PROTOCOL_ENV_FILE "BERTH_PREEMPT_FILE"

#define PROTOCOL_LINE_MAX 256       /* with its line end        */
#define PROTOCOL_CONNECTIONS_MAX 64 /* of one job: its ranks   */

#define PROTOCOL_HELLO "hello"
#define PROTOCOL_REPORT "report"
#define PROTOCOL_TOTAL "total"
#define PROTOCOL_SAVED "saved"
#define PROTOCOL_RATE "rate"
#define PROTOCOL_STOP "stop"
#define PROTOCOL_NO_LOSS "-"
