/* The loop of `tesela top`: fetch, draw, wait for a key or a second. The terminal is always restored on exit. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool/remote.h"
#include "tool/steer.h"
#include "tool/top_view.h"

static remote_given given = {.endpoint = REMOTE_ENDPOINT};
static const char *once, *interval = "1";

static const tool_option options[] = {
    {"once", NULL, "print one plain table and end", &once, false},
    {"interval", "SECONDS", "between two looks", &interval, false},
    REMOTE_OPTIONS(given),
};

enum { OPTIONS = sizeof options / sizeof *options };

/* ---- fetching ---- */

typedef struct view {
    remote remote;
    slice database, container;
    char endpoint[300];
    remote_answer ranges;
    top_rows rows;
    top_server server;
    top_screen screen;
    char trouble[600];
} view;

static bool ask(view *v, const char *path, bool filtered, remote_answer *answer) {
    buf whole = buf_init(BUF_NO_LIMIT);
    buf_addf(&whole, "%s", path);
    if (filtered) {
        remote_add_param(&whole, "database", v->database);
        remote_add_param(&whole, "container", v->container);
    }
    bool good = remote_ask(&v->remote, "GET", buf_view(&whole), SLICE_EMPTY, answer, v->trouble, sizeof v->trouble);
    if (good && (answer->status != 200 || answer->bson.n == 0)) {
        snprintf(v->trouble, sizeof v->trouble, "the server answers %u%s", answer->status,
                 answer->status == 401   ? ": --key, or TESELA_KEY, must be one of its keys"
                 : answer->status == 404 ? ": there is no such database or container"
                                         : "");
        good = false;
    }
    buf_free(&whole);
    return good;
}

/* The old rows stay until new ones have been fetched. */
static bool look(view *v) {
    remote_answer overview = {0}, ranges = {0};
    bool good = ask(v, "/_tesela/", false, &overview) && ask(v, "/_tesela/ranges", true, &ranges);
    if (good) {
        v->server = top_server_read(buf_view(&overview.bson));
        remote_answer_free(&v->ranges);
        free(v->rows.list);
        v->ranges = ranges;
        v->rows = top_rows_read(buf_view(&v->ranges.bson));
    } else {
        remote_answer_free(&ranges);
    }
    remote_answer_free(&overview);
    v->screen.trouble = good ? NULL : v->trouble;
    return good;
}

/* ---- the terminal ---- */

static struct termios before;
static volatile sig_atomic_t ending;

static void on_signal(int number) {
    ending = ending || number != SIGWINCH;
}

static void write_all(const char *p, size_t n) {
    while (n) {
        ssize_t k = write(STDOUT_FILENO, p, n);
        if (k < 0 && errno != EINTR) {
            return;
        }
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
}

static void leave_screen(void) {
    static const char text[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";
    write_all(text, sizeof text - 1);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Switches to the alternate screen, without cursor, line wrap and line buffering. Signals only set a flag, so that the terminal is
 * restored. */
static bool enter_screen(void) {
    static const char text[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
    struct sigaction interrupts = {.sa_handler = on_signal};
    if (tcgetattr(STDIN_FILENO, &before) != 0) {
        return false;
    }
    sigaction(SIGINT, &interrupts, NULL);
    sigaction(SIGTERM, &interrupts, NULL);
    sigaction(SIGHUP, &interrupts, NULL);
    sigaction(SIGWINCH, &interrupts, NULL);
    struct termios keys = before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys);
    write_all(text, sizeof text - 1);
    return true;
}

static void measure(top_screen *s) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    s->columns = known ? size.ws_col : 80;
    s->lines = known ? size.ws_row : 24;
}

static void draw(view *v) {
    buf out = buf_init(BUF_NO_LIMIT);
    measure(&v->screen);
    size_t room = top_lines_of_rows(&v->screen), most = v->rows.n > room ? v->rows.n - room : 0;
    v->screen.scroll = v->screen.scroll < most ? v->screen.scroll : most;
    top_rows_sort(&v->rows, v->screen.order);
    top_draw(&out, &v->screen, &v->server, &v->rows);
    write_all(out.p, out.n);
    buf_free(&out);
}

/* ---- keys ---- */

static void scroll(view *v, long by) {
    long to = (long)v->screen.scroll + by;
    v->screen.scroll = to > 0 ? (size_t)to : 0;
}

/* Handles a key that sends several bytes, ESC [ digits letter. Returns the number of bytes. */
static size_t take_sequence(view *v, slice keys) {
    long page = (long)top_lines_of_rows(&v->screen), by = 0;
    size_t n = 2;
    while (n < keys.n && (keys.p[n] < '@' || keys.p[n] > '~')) {
        n++;
    }
    char first = keys.n > 2 ? keys.p[2] : '\0';
    switch (first) {
    case 'A':
        by = -1;
        break;
    case 'B':
        by = 1;
        break;
    case '5':
        by = -page;
        break;
    case '6':
        by = page;
        break;
    case 'H':
        by = -(long)v->rows.n;
        break;
    case 'F':
        by = (long)v->rows.n;
        break;
    default:
        break;
    }
    scroll(v, by);
    return n + 1;
}

/* Returns false to quit. */
static bool take_keys(view *v, slice keys) {
    static const char letters[] = "nputisl"; /* in the order of top_order */
    while (keys.n) {
        bool sequence = keys.n >= 2 && keys.p[0] == '\x1b' && (keys.p[1] == '[' || keys.p[1] == 'O');
        const char *letter = keys.p[0] ? strchr(letters, keys.p[0]) : NULL;
        if (keys.p[0] == 'q' || keys.p[0] == 'Q') {
            return false;
        }
        if (letter) {
            v->screen.order = (top_order)(letter - letters);
        }
        keys = slice_skip(keys, sequence ? take_sequence(v, keys) : 1);
    }
    return true;
}

/* Redraws after every key, until it is time to fetch. Returns false to quit. */
static bool wait_until(view *v, int64_t until_ms) {
    for (;;) {
        int64_t left = until_ms - clock_monotonic_us(&clock_system) / 1000;
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char keys[64];
        if (ending || left <= 0) {
            return !ending;
        }
        int ready = poll(&input, 1, (int)left);
        if (ready > 0) {
            ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
            if (n <= 0 || !take_keys(v, slice_of(keys, (size_t)n))) {
                return false;
            }
        }
        if (ready != 0 && !ending) {
            draw(v);
        }
    }
}

static int watch(view *v, uint64_t seconds) {
    if (!enter_screen()) {
        fprintf(stderr, "tesela top: standard input is no terminal. --once prints a table.\n");
        return 2;
    }
    int64_t next;
    do {
        next = clock_monotonic_us(&clock_system) / 1000 + (int64_t)seconds * 1000;
        look(v);
        if (!ending) {
            draw(v);
        }
    } while (wait_until(v, next));
    leave_screen();
    return 0;
}

static int print_once(view *v) {
    if (!look(v)) {
        fprintf(stderr, "tesela: %s.\n", v->trouble);
        return 1;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    top_rows_sort(&v->rows, TOP_BY_NAME);
    top_write_table(&out, &v->rows);
    write_all(out.p, out.n);
    buf_free(&out);
    return 0;
}

static int run(int argc, char **argv) {
    tool_words words = {0};
    uint64_t seconds;
    if (!tool_options_read_words(options, OPTIONS, argc, argv, "top", &words)) {
        return 2;
    }
    if (given.help) {
        tool_help(&tool_top);
        return 0;
    }
    view v = {.screen = {.order = TOP_BY_NAME, .colour = getenv("NO_COLOR") == NULL}};
    if (!remote_open(&v.remote, &given) || !tool_read_number("interval", interval, 1, 3600, &seconds) || words.n > 1 ||
        (words.n && !remote_names(words.list[0], true, &v.database, &v.container))) {
        return 2;
    }
    snprintf(v.endpoint, sizeof v.endpoint, "%s:%s", v.remote.host, v.remote.port);
    v.screen.endpoint = v.endpoint;
    int status = once || !isatty(STDOUT_FILENO) ? print_once(&v) : watch(&v, seconds);
    remote_answer_free(&v.ranges);
    free(v.rows.list);
    return status;
}

const tool_command tool_top = {
    .name = "top",
    .summary = "watch the containers and ranges of a running server",
    .usage = "[DATABASE[/CONTAINER]] [options]",
    .about = "Shows the containers and ranges of a running server: what each may spend and spends, what is throttled, what it holds, how\n"
             "long requests take, and its hottest partition key.",
    .options = options,
    .options_n = OPTIONS,
    .notes = "keys: q ends; arrows and page keys scroll; n p u t i s l sort by name, normalised RU, RU, 429, items, size, latency",
    .examples = "tesela top\n"
                "tesela top shop/orders --interval 5\n"
                "tesela top --endpoint https://db.example:8081 --key BASE64 --once | sort -k3 -n",
    .run = run,
};
