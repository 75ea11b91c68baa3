/* Any text as a batch script: an error with a message, or a request. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/request_builder.h"
#include "cmd/berth/request_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct request_builder builder;
    struct error err = { "" };
    arena_init(&arena, 0);
    request_builder_init(&builder, &arena);
    char *text = arena_array(&arena, char, size + 1);
    memcpy(text, data, size);
    request_source_is_script(text);
    int r = request_source_read_lines(&builder, text, "input", NULL, &err);
    struct json *body = NULL;
    if (r == 0 && builder.array.count * (builder.param_count + 1) < 1000)
        r = request_builder_body(&builder, &body, &err);
    assert(r == 0 || err.text[0]);
    json_free(body);
    request_builder_release(&builder);
    arena_release(&arena);
    return 0;
}
