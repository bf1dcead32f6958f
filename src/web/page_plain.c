#include "web/assets.h"

/* What is there without the bundled page. */
static const char index_html[] =
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Sonde</title>\n"
        "<h1>Sonde</h1>\n<p>The page is not in this build; the API is: <a "
        "href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a>.\n</html>\n";

const struct web_asset WEB_ASSETS[] = {
        {"/", "text/html; charset=utf-8", index_html, sizeof(index_html) - 1, false, "\"plain-1\""},
        {0},
};
