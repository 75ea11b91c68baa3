/*
 * regex_re2.cc - regular expressions by RE2, which simulates automata and never backtracks.
 *
 * The only file in C++.  Its functions are called from C, so no exception may leave them:
 * there is one kind that RE2 can cause, the want of memory.
 */
extern "C" {
#include "base/error.h"
#include "host/regex.h"
}

#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include <re2/re2.h>

#define SPANS_MAX 32

struct regex {
    RE2 compiled;
};

static RE2::Options make_options()
{
    RE2::Options options;
    options.set_encoding(RE2::Options::EncodingLatin1); /* bytes */
    options.set_longest_match(true);
    options.set_max_mem(REGEX_MEMORY_MAX);
    options.set_log_errors(false);
    return options;
}

static int explain_failure(const RE2 &compiled, struct error *err)
{
    switch (compiled.error_code()) {
    case RE2::ErrorRepeatSize:
        return error_set(err, -EINVAL, "%.60s repeats more than 1000 times in all",
                         compiled.error_arg().c_str());
    case RE2::ErrorPatternTooLarge:
        return error_set(err, -EINVAL, "takes more than %d bytes when compiled",
                         REGEX_MEMORY_MAX);
    default:
        return error_set(err, -EINVAL, "%.150s", compiled.error().c_str());
    }
}

static int check_size(const RE2 &compiled, struct error *err)
{
    int steps = compiled.ProgramSize();
    return steps <= REGEX_STEPS_MAX
               ? 0
               : error_set(err, -EINVAL, "compiles to %d steps, more than %d", steps,
                           REGEX_STEPS_MAX);
}

static int compile_text(struct regex **ret_regex, const char *text, struct error *err)
{
    std::unique_ptr<regex> made(new regex{ { text, make_options() } });
    int r = made->compiled.ok() ? check_size(made->compiled, err)
                                : explain_failure(made->compiled, err);
    if (r == 0)
        *ret_regex = made.release();
    return r;
}

int regex_compile(struct regex **ret_regex, const char *text, struct error *err)
{
    try {
        return compile_text(ret_regex, text, err);
    } catch (...) {
        return error_set(err, -ENOMEM, "out of memory");
    }
}

void regex_free(struct regex *regex)
{
    delete regex;
}

int regex_group_count(const struct regex *regex)
{
    return regex->compiled.NumberOfCapturingGroups();
}

int regex_group_named(const struct regex *regex, const char *name)
{
    try {
        const auto &names = regex->compiled.NamedCapturingGroups();
        auto found = names.find(name);
        return found == names.end() ? 0 : found->second;
    } catch (...) {
        return 0;
    }
}

static bool search_text(const RE2 &compiled, const re2::StringPiece &text,
                        struct regex_span *ret_spans, int span_count)
{
    re2::StringPiece groups[SPANS_MAX];
    if (span_count > SPANS_MAX ||
        !compiled.Match(text, 0, text.size(), RE2::UNANCHORED, groups, span_count))
        return false;
    for (int i = 0; i < span_count; i++) {
        int start = groups[i].data() ? (int)(groups[i].data() - text.data()) : -1;
        int end = start < 0 ? -1 : start + (int)groups[i].size();
        ret_spans[i] = { start, end };
    }
    return true;
}

bool regex_search(const struct regex *regex, const char *text, size_t length,
                  struct regex_span *ret_spans, int span_count)
{
    try {
        return search_text(regex->compiled, { text, length }, ret_spans, span_count);
    } catch (...) {
        return false;
    }
}
