/* Any text as a batch script: its lines are refused with a sentence, or make a request. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/draft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct draft draft;
    struct error err = { "" };
    arena_init(&arena, 0);
    draft_init(&draft, &arena);
    char *text = arena_array(&arena, char, size + 1);
    memcpy(text, data, size);
    source_is_script(text);
    int r = source_lines(&draft, text, "input", NULL, &err);
    struct json *body = NULL;
    if (r == 0 && draft.array.count * (draft.param_count + 1) < 1000)
        r = draft_body(&draft, &body, &err);
    assert(r == 0 || err.text[0]);
    json_free(body);
    draft_release(&draft);
    arena_release(&arena);
    return 0;
}
