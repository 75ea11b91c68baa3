/* Any bytes as a job file: refused with a sentence, or JSON. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/yaml.h"
#include "base/error.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *json, *lines;
    struct error err = { "" };
    if (yaml_read((const char *)data, size, "input", &json, &lines, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    char *text = json_text(json);
    assert(text[0] == '{');
    free(text);
    json_free(json);
    json_free(lines);
    return 0;
}
