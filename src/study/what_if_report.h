/* what_if_report.h - what came out of struct what_if, for programs and for the report page. */
#pragma once

struct json;
struct what_if;

/* One object with the figures.  json_free() it. */
struct json *what_if_json(const struct what_if *what);

/* For the report page: the plots of a comparison, with these figures.  json_free() it. */
struct json *what_if_page(const struct what_if *what);
