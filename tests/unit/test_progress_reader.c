/* What a supervisor accepts from the process that reads progress. */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/progress_reader.h"

/* A reader that a user has replaced. */
static struct progress_reader make_false_reader(int *ret_other)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    *ret_other = pair[1];
    return (struct progress_reader){ .fd = pair[0] };
}

static void assert_takes(const void *bytes, size_t size, int result)
{
    int other;
    struct progress_record record;
    struct progress_reader reader = make_false_reader(&other);
    assert_int_equal(send(other, bytes, size, 0), size);
    assert_int_equal(progress_reader_receive(&reader, &record), result);
    close(other);
    close(reader.fd);
}

static void numbers_that_make_sense_are_taken(void **state)
{
    const struct progress_record sound[] = {
        { .flags = PROGRESS_REPORTED, .step = 7, .loss = -0.5 },
        { .flags = PROGRESS_REPORTED, .step = NAN, .loss = NAN },
        { .flags = PROGRESS_TOTAL | PROGRESS_SAVED, .total = 1e300, .saved = 0 },
        { .answers = UINT32_MAX },
    };
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++)
        assert_takes(&sound[i], sizeof sound[i], 1);
}

static void numbers_without_sense_end_the_reader(void **state)
{
    const struct progress_record bad[] = {
        { .step = -1 },
        { .step = INFINITY },
        { .loss = INFINITY },
        { .total = NAN },
        { .rate = -INFINITY },
        { .rate = -1 },
        { .saved = NAN },
        { .saved = -1 },
        { .flags = PROGRESS_TOTAL, .total = 0 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_takes(&bad[i], sizeof bad[i], -1);
}

static void records_of_another_size_end_the_reader(void **state)
{
    char bytes[2 * sizeof(struct progress_record)] = { 0 };
    assert_takes(bytes, 1, -1);
    assert_takes(bytes, sizeof(struct progress_record) - 1, -1);
    assert_takes(bytes, sizeof(struct progress_record) + 1, -1);
    assert_takes(bytes, sizeof bytes, -1);
}

static void a_reader_that_says_nothing_is_not_waited_for(void **state)
{
    int other;
    struct progress_record record;
    struct progress_reader reader = make_false_reader(&other);
    assert_int_equal(progress_reader_receive(&reader, &record), 0);
    uint32_t last = 0;
    for (int i = 0; i < 10000; i++) { /* it does not read, either */
        uint32_t number = progress_reader_ask(&reader, (struct progress_warning){ 0 });
        if (number == 0)
            break;
        last = number;
    }
    assert_true(last > 0 && last < 10000);
    close(other);
    assert_int_equal(progress_reader_ask(&reader, (struct progress_warning){ 0 }), 0);
    assert_int_equal(progress_reader_receive(&reader, &record), -1);
    close(reader.fd);
}

RUN_CASES(TEST(numbers_that_make_sense_are_taken),
          TEST(numbers_without_sense_end_the_reader),
          TEST(records_of_another_size_end_the_reader),
          TEST(a_reader_that_says_nothing_is_not_waited_for));
