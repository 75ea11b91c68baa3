/* Any JSON as a request: refused with a sentence, or the same after a round trip. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct request *request)
{
    struct json *json = request_write(request);
    char *text = json_text_exact(json);
    json_free(json);
    return text;
}

static void again(const struct request *request, struct arena *arena)
{
    char *once = written(request);
    struct json *json;
    struct request same;
    struct error err;
    int r = json_parse(once, strlen(once), &json, &err);
    assert(r == 0);
    r = request_read(&same, arena, json, &err);
    assert(r == 0);
    char *twice = written(&same);
    assert(strcmp(once, twice) == 0);
    json_free(json);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *json;
    struct error err = { "" };
    if (json_parse((const char *)data, size, &json, &err) < 0)
        return 0;
    struct arena arena;
    arena_init(&arena, 0);
    struct request request;
    int r = request_read(&request, &arena, json, &err);
    assert(r == 0 || err.text[0]);
    if (r == 0)
        again(&request, &arena);
    arena_release(&arena);
    json_free(json);
    return 0;
}
