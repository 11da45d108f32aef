#include <string.h>

#include "tool/command.h"

static slice next_line(slice *rest) {
    const char *end = memchr(rest->p, '\n', rest->n);
    slice line = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);
    *rest = slice_skip(*rest, line.n + (end != NULL));
    return line;
}

/* ---- --help ---- */

void tool_usage(const tool_command *c, FILE *to) {
    slice rest = slice_str(c->usage);
    const char *before = "usage:";
    while (rest.n) {
        slice form = next_line(&rest);
        fprintf(to, "%s tesela %s %.*s\n", before, c->name, (int)form.n, form.p);
        before = "      ";
    }
}

static void print_indented(const char *text) {
    slice rest = slice_str(text);
    while (rest.n) {
        slice line = next_line(&rest);
        printf("  %.*s\n", (int)line.n, line.p);
    }
}

void tool_help(const tool_command *c) {
    tool_usage(c, stdout);
    printf("\n%s\n\n", c->about);
    tool_options_help(c->options, c->options_n);
    if (c->notes) {
        printf("\n%s\n", c->notes);
    }
    printf("\nexamples:\n");
    print_indented(c->examples);
}

/* ---- the manual page ---- */

/* Text in roff: a backslash and a hyphen are escaped, and a line does not begin with a control character. */
static void add_roff(buf *out, slice text) {
    bool starts = true;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (starts && (c == '.' || c == '\'')) {
            buf_add_lit(out, "\\&");
        }
        if (c == '\\') {
            buf_add_lit(out, "\\e");
        } else if (c == '-') {
            buf_add_lit(out, "\\-");
        } else {
            buf_add_byte(out, c);
        }
        starts = c == '\n';
    }
}

static void add_text(buf *out, const char *text) {
    add_roff(out, slice_str(text));
}

/* Adds paragraphs: a blank line becomes a macro. */
static void add_paragraphs(buf *out, const char *text) {
    slice rest = slice_str(text);
    while (rest.n) {
        slice line = next_line(&rest);
        if (line.n) {
            add_roff(out, line);
            buf_add_byte(out, '\n');
        } else {
            buf_add_lit(out, ".PP\n");
        }
    }
}

static void add_verbatim(buf *out, const char *text) {
    buf_add_lit(out, ".PP\n.RS 4\n.nf\n");
    add_text(out, text);
    buf_add_lit(out, "\n.fi\n.RE\n");
}

static void add_option(buf *out, const tool_option *o) {
    buf_add_lit(out, ".TP\n\\fB\\-\\-");
    add_text(out, o->name);
    buf_add_lit(out, "\\fR");
    if (o->value) {
        buf_add_lit(out, " \\fI");
        add_text(out, o->value);
        buf_add_lit(out, "\\fR");
    }
    buf_add_byte(out, '\n');
    add_text(out, o->help);
    if (o->value && *o->text && !o->secret) {
        buf_add_lit(out, " [");
        add_text(out, *o->text);
        buf_add_byte(out, ']');
    }
    buf_add_byte(out, '\n');
}

static void add_synopsis(buf *out, const tool_command *c) {
    slice rest = slice_str(c->usage);
    while (rest.n) {
        buf_add_lit(out, "\\fBtesela ");
        add_text(out, c->name);
        buf_add_lit(out, "\\fR ");
        add_roff(out, next_line(&rest));
        buf_add_lit(out, "\n.br\n");
    }
}

static void add_command(buf *out, const tool_command *c) {
    buf_add_lit(out, ".SS tesela ");
    add_text(out, c->name);
    buf_add_byte(out, '\n');
    add_synopsis(out, c);
    buf_add_lit(out, ".PP\n");
    add_paragraphs(out, c->about);
    for (size_t i = 0; i < c->options_n; i++) {
        if (c->options[i].help) {
            add_option(out, &c->options[i]);
        }
    }
    if (c->notes) {
        buf_add_lit(out, ".PP\n");
        add_paragraphs(out, c->notes);
    }
    buf_add_lit(out, ".PP\nExamples:\n");
    add_verbatim(out, c->examples);
}

static const char man_end[] =
    ".SH ENVIRONMENT\n"
    "Every option is also a variable: \\fBTESELA_SQL_PORT\\fR=9000 is \\fB\\-\\-sql\\-port\\fR 9000. An option on the command line wins.\n"
    ".SH FILES\n"
    "A data folder has \\fIFORMAT\\fR (whose it is, and the lock), \\fIdb/\\fR, and the self\\-signed \\fItls\\-cert.pem\\fR and "
    "\\fItls\\-key.pem\\fR.\n"
    ".SH EXIT STATUS\n"
    "0: done. 1: it could not be done, and standard error says why. 2: a mistake on the command line.\n";

void tool_man(buf *out, const tool_command *const *commands, size_t n) {
    buf_add_lit(out, ".TH TESELA 1 \"\" \"tesela " TESELA_VERSION "\" \"User Commands\"\n.SH NAME\n"
                     "tesela \\- a database that behaves as Azure Cosmos DB does\n.SH SYNOPSIS\n"
                     "\\fBtesela\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n");
    for (size_t i = 0; i < n; i++) {
        buf_add_lit(out, ".TP\n\\fB");
        add_text(out, commands[i]->name);
        buf_add_lit(out, "\\fR\n");
        add_text(out, commands[i]->summary);
        buf_add_byte(out, '\n');
    }
    buf_add_lit(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        add_command(out, commands[i]);
    }
    buf_add_lit(out, man_end);
}
