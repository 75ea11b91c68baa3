/* Any bytes as JSON: refused with a sentence, or the same after a round trip. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *json;
    struct error err = { "" };
    if (json_parse((const char *)data, size, &json, &err) < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    char *once = json_text(json);
    struct json *again;
    int r = json_parse(once, strlen(once), &again, NULL);
    assert(r == 0);
    char *twice = json_text(again);
    assert(strcmp(once, twice) == 0);
    free(once);
    free(twice);
    json_free(json);
    json_free(again);
    return 0;
}
