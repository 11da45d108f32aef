/* engine.c — see engine.h. */
#include "script/worker/engine.h"

#include <JavaScriptCore/JavaScript.h>
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "script/worker/socket.h"

/* Exported by the library, but declared in none of its headers. */
typedef bool (*JSShouldTerminateCallback)(JSContextRef context, void *user);
void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double seconds, JSShouldTerminateCallback callback, void *user);
void JSSynchronousGarbageCollectForDebugging(JSContextRef context);
void JSGlobalContextSetUnhandledRejectionCallback(JSGlobalContextRef context, JSObjectRef function, JSValueRef *exception);

enum {
    HARD_LIMIT_EXTRA_MS = 300,
    SCENES_PER_COLLECTION = 32,
    KEPT_BYTES_MAX = 1024 * 1024, /* a larger buffer is freed after its frame */
    WORN_RSS_KB = 192 * 1024,
    WORN_CPU_SECONDS = 900,
    FRAME_DEPTH = LIMIT_JSON_DEPTH + 4, /* an item inside a frame */
};

/* A script's global, and the object with the API's functions that are called from C. */
typedef struct scene {
    JSGlobalContextRef context;
    JSObjectRef api;
} scene;

static JSContextGroupRef group;
static JSStringRef api_source;
static JSStringRef api_url;
static JSObjectRef nothing; /* an empty function, in a global that is never closed */
static scene spare;         /* prepared for the next script while none runs */
static scene functions;     /* user-defined functions of the current query */
static unsigned scenes_since_collection;
static buf out = {.max = BUF_NO_LIMIT};
static timer_t hard_timer;
static size_t memory_bytes; /* memory limit of a script */
static uint64_t limit_ns;
static uint64_t started_ns; /* CPU time of this thread when the frame arrived */
static bool exceeded;

/* ---- time ---- */

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool on_limit(JSContextRef context, void *user) {
    (void)context, (void)user;
    exceeded = true;
    return true;
}

/* The engine restarts its count at each entry, so the remaining time is set before each. */
static void set_soft_limit(void) {
    uint64_t used = thread_ns() - started_ns;
    double left = used < limit_ns ? (double)(limit_ns - used) / 1e9 : 0.001;
    JSContextGroupSetExecutionTimeLimit(group, left, on_limit, NULL);
}

static void set_hard_limit(uint64_t ns) {
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000U), .tv_nsec = (long)(ns % 1000000000U)}};
    timer_settime(hard_timer, 0, &at, NULL);
}

/* Resets the time used by the script to 0. */
static void restart_clock(void) {
    started_ns = thread_ns();
    exceeded = false;
    set_soft_limit();
}

static void begin(void) {
    restart_clock();
    set_hard_limit(limit_ns + HARD_LIMIT_EXTRA_MS * 1000000ULL);
}

/* Sends the frame in `out`. */
static void end(void) {
    set_hard_limit(0);
    frames_write(&out);
    if (out.cap > KEPT_BYTES_MAX) {
        buf_free(&out);
    }
}

/* ---- fatal signals ---- */

/* Frames prepared beforehand, since a signal handler can only send them. */
typedef struct last_words {
    char frame[256];
    size_t n;
} last_words;

static last_words exceeded_words;
static last_words crash_words;

static void make_last_words(last_words *w, const char *message, const char *number) {
    buf b = buf_init(sizeof w->frame);
    buf_add(&b, "\0\0\0", FRAMES_LENGTH_BYTES);
    buf_addf(&b, "%c{\"last\":true,\"compile\":false,\"message\":\"%s\"%s}", SCRIPT_FAULT, message, number);
    assert(buf_ok(&b) && b.n - FRAMES_LENGTH_BYTES <= UINT8_MAX);
    b.p[0] = (char)(b.n - FRAMES_LENGTH_BYTES);
    memcpy(w->frame, b.p, b.n);
    w->n = b.n;
    buf_free(&b);
}

static void make_all_last_words(uint64_t limit_ms) {
    char text[64];
    snprintf(text, sizeof text, "The script exceeded its time limit of %.1f seconds.", (double)limit_ms / 1000);
    make_last_words(&exceeded_words, text, ",\"number\":408");
    make_last_words(&crash_words, "The script needed more memory than a script may have, or made the engine fail.", "");
}

static void on_exceeded(int signal_number) {
    (void)signal_number;
    frames_end_with(exceeded_words.frame, exceeded_words.n);
}

static void on_crash(int signal_number) {
    (void)signal_number;
    frames_end_with(crash_words.frame, crash_words.n);
}

static void catch_signals(void) {
    static char stack[64 * 1024];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    const int deaths[] = {SIGABRT, SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGSYS};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        sigaction(deaths[i], &crash, NULL);
    }
    struct sigaction late = {.sa_handler = on_exceeded, .sa_flags = SA_ONSTACK};
    sigaction(SIGVTALRM, &late, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &hard_timer) != 0) {
        _exit(2);
    }
}

/* ---- text ---- */

static JSStringRef js_text(slice text) { /* `text` must be followed by a zero byte, as frames are */
    return JSStringCreateWithUTF8CString(text.p);
}

/* Begins a frame in `out`. The caller appends the kind and the text. */
static void begin_frame(void) {
    buf_clear(&out);
    buf_add(&out, "\0\0\0", FRAMES_LENGTH_BYTES);
}

/* Makes a frame in `out` from a string value whose first character is the frame's kind; false if it cannot be sent. */
static bool make_frame(JSContextRef context, JSValueRef value) {
    JSStringRef text = JSValueToStringCopy(context, value, NULL);
    begin_frame();
    if (text) {
        size_t room = JSStringGetMaximumUTF8CStringSize(text);
        buf_reserve(&out, room);
        size_t n = JSStringGetUTF8CString(text, out.p + out.n, room);
        out.n += n ? n - 1 : 0;
        JSStringRelease(text);
    }
    return out.n > SCRIPT_HEADER_BYTES && out.n - FRAMES_LENGTH_BYTES <= SCRIPT_FRAME_BYTES_MAX;
}

static slice frame_text(void) {
    return (slice){out.p + SCRIPT_HEADER_BYTES, out.n - SCRIPT_HEADER_BYTES};
}

/* Whether JSON text is nested deeper than the server accepts. The text is well-formed, since the engine wrote it. */
static bool too_deep(slice text) {
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > FRAME_DEPTH) {
                return true;
            }
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

/* ---- functions that the API calls ---- */

static JSValueRef empty_text(JSContextRef context) {
    JSStringRef text = JSStringCreateWithUTF8CString("");
    JSValueRef value = JSValueMakeString(context, text);
    JSStringRelease(text);
    return value;
}

static JSValueRef host_call(JSContextRef context, JSObjectRef function, JSObjectRef self, size_t n, const JSValueRef arguments[],
                            JSValueRef *exception) {
    (void)function, (void)self, (void)exception;
    if (n == 0 || !make_frame(context, arguments[0]) || too_deep(frame_text())) {
        return empty_text(context);
    }
    frames_write(&out);
    slice answer;
    if (frames_read(&answer) != SCRIPT_ANSWER) {
        _exit(2);
    }
    JSStringRef given = js_text(answer);
    JSValueRef value = JSValueMakeString(context, given);
    JSStringRelease(given);
    return value;
}

static JSStringRef argument(JSContextRef context, size_t n, const JSValueRef arguments[], size_t at) {
    JSStringRef text = n > at ? JSValueToStringCopy(context, arguments[at], NULL) : NULL;
    return text ? text : JSStringCreateWithUTF8CString("");
}

static JSValueRef host_check(JSContextRef context, JSObjectRef function, JSObjectRef self, size_t n, const JSValueRef arguments[],
                             JSValueRef *exception) {
    (void)function, (void)self;
    JSStringRef text = argument(context, n, arguments, 0);
    JSStringRef url = argument(context, n, arguments, 1);
    JSCheckScriptSyntax(context, text, url, 1, exception);
    JSStringRelease(text);
    JSStringRelease(url);
    return JSValueMakeUndefined(context);
}

static JSValueRef host_evaluate(JSContextRef context, JSObjectRef function, JSObjectRef self, size_t n, const JSValueRef arguments[],
                                JSValueRef *exception) {
    (void)function, (void)self;
    JSStringRef text = argument(context, n, arguments, 0);
    JSStringRef url = argument(context, n, arguments, 1);
    JSValueRef value = JSEvaluateScript(context, text, NULL, url, 1, exception);
    JSStringRelease(text);
    JSStringRelease(url);
    return value ? value : JSValueMakeUndefined(context);
}

static JSValueRef host_nothing(JSContextRef context, JSObjectRef function, JSObjectRef self, size_t n, const JSValueRef arguments[],
                               JSValueRef *exception) {
    (void)function, (void)self, (void)n, (void)arguments, (void)exception;
    return JSValueMakeUndefined(context);
}

/* ---- scenes ---- */

static void add_host_function(scene *s, JSObjectRef host, const char *name, JSObjectCallAsFunctionCallback callback) {
    JSStringRef text = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(s->context, host, text, JSObjectMakeFunctionWithCallback(s->context, text, callback), kJSPropertyAttributeNone,
                        NULL);
    JSStringRelease(text);
}

static JSObjectRef api_function(const scene *s, const char *name) {
    JSStringRef text = JSStringCreateWithUTF8CString(name);
    JSValueRef value = JSObjectGetProperty(s->context, s->api, text, NULL);
    JSStringRelease(text);
    return JSValueToObject(s->context, value, NULL);
}

/* Makes a fresh global with the API in it. If the API's own text fails, the process exits. */
static scene scene_open(void) {
    scene s = {.context = JSGlobalContextCreateInGroup(group, NULL)};
    JSValueRef made = JSEvaluateScript(s.context, api_source, NULL, api_url, 1, NULL);
    JSObjectRef factory = made ? JSValueToObject(s.context, made, NULL) : NULL;
    JSObjectRef host = JSObjectMake(s.context, NULL, NULL);
    add_host_function(&s, host, "call", host_call);
    add_host_function(&s, host, "check", host_check);
    add_host_function(&s, host, "evaluate", host_evaluate);
    JSValueRef api = factory ? JSObjectCallAsFunction(s.context, factory, NULL, 1, (JSValueRef[]){host}, NULL) : NULL;
    s.api = api ? JSValueToObject(s.context, api, NULL) : NULL;
    if (!s.api) {
        _exit(2);
    }
    JSValueProtect(s.context, s.api);
    JSGlobalContextSetUnhandledRejectionCallback(s.context, api_function(&s, "rejected"), NULL);
    return s;
}

static void scene_close(scene *s) {
    if (s->context) {
        /* The engine never releases the callback, nor its global; so it is replaced by one in a global that is never closed. */
        JSGlobalContextSetUnhandledRejectionCallback(s->context, nothing, NULL);
        JSValueUnprotect(s->context, s->api);
        JSGlobalContextRelease(s->context);
        *s = (scene){0};
    }
}

static scene scene_take(void) {
    scene s = spare.context ? spare : scene_open();
    spare = (scene){0};
    return s;
}

/* Called between two scripts. The collector does not know how much memory a closed global holds outside its heap, so it is run now and
 * then. */
static void tidy_up(void) {
    restart_clock(); /* so that this does not count as script time */
    spare = spare.context ? spare : scene_open();
    if (++scenes_since_collection >= SCENES_PER_COLLECTION) {
        scenes_since_collection = 0;
        JSSynchronousGarbageCollectForDebugging(spare.context);
    }
}

static void send_fault(const char *message, int number) {
    begin_frame();
    buf_addf(&out, "%c{\"compile\":false,\"message\":\"%s\",\"number\":%d}", SCRIPT_FAULT, message, number);
    end();
}

/* Adds "last":true to the final frame of a run in `out`, whose text is an object, sends it and exits. */
static _Noreturn void send_last(void) {
    static const char word[] = "\"last\":true";
    size_t at = SCRIPT_HEADER_BYTES + 1;
    bool alone = out.n == at + 1;
    buf_add(&out, word, sizeof word); /* makes room, with one more byte for the comma */
    memmove(out.p + at + sizeof word, out.p + at, out.n - sizeof word - at);
    memcpy(out.p + at, word, sizeof word - 1);
    out.p[at + sizeof word - 1] = alone ? ' ' : ',';
    end();
    _exit(0);
}

/* Memory left behind by scripts must not fail the next one: half of a script's limit has to be free. */
static bool has_room(void) {
    void *room = mmap(NULL, memory_bytes / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room != MAP_FAILED && munmap(room, memory_bytes / 2) == 0;
}

static bool is_worn(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return !has_room() || used.ru_maxrss > WORN_RSS_KB || used.ru_utime.tv_sec + used.ru_stime.tv_sec > WORN_CPU_SECONDS;
}

/* Calls one of the API's functions. NULL: the time limit ended it, or it threw, which happens only if the engine itself fails. */
static JSValueRef enter(const scene *s, JSObjectRef function, JSValueRef argument_or_null) {
    JSValueRef exception = NULL;
    set_soft_limit();
    JSValueRef value = JSObjectCallAsFunction(s->context, function, NULL, argument_or_null ? 1 : 0,
                                              argument_or_null ? (JSValueRef[]){argument_or_null} : NULL, &exception);
    return exceeded || exception ? NULL : value;
}

/* The engine failed. Promise jobs or memory may be left in it, so the process ends. */
static _Noreturn void send_failure(void) {
    if (exceeded) {
        set_hard_limit(0);
        frames_end_with(exceeded_words.frame, exceeded_words.n);
    }
    begin_frame();
    buf_addf(&out, "%c{\"compile\":false,\"message\":\"The script went deeper, or needed more memory, than a script may.\"}", SCRIPT_FAULT);
    send_last();
}

/* Sends the API's result: a string whose first character is the frame's kind. */
static void send_result(const scene *s, JSValueRef value) {
    if (!value) {
        send_failure();
    }
    if (!make_frame(s->context, value)) {
        send_fault("The script's result is too large.", 413);
        return;
    }
    if (too_deep(frame_text())) {
        send_fault("The script's result is nested too deeply.", 400);
        return;
    }
    char kind = out.p[FRAMES_LENGTH_BYTES];
    if ((kind == SCRIPT_DONE || kind == SCRIPT_FAULT) && is_worn()) {
        send_last();
    }
    end();
}

static JSValueRef text_value(const scene *s, slice text) {
    JSStringRef string = js_text(text);
    JSValueRef value = JSValueMakeString(s->context, string);
    JSStringRelease(string);
    return value;
}

/* ---- the frames ---- */

void engine_run(slice text) {
    begin();
    scene s = scene_take();
    JSObjectRef step = api_function(&s, "step");
    JSValueRef value = enter(&s, api_function(&s, "start"), text_value(&s, text));
    while (value && JSValueIsUndefined(s.context, value)) {
        value = enter(&s, step, NULL);
    }
    send_result(&s, value);
    scene_close(&s);
    tidy_up();
}

void engine_define(slice text) {
    begin();
    scene_close(&functions);
    functions = scene_take();
    send_result(&functions, enter(&functions, api_function(&functions, "define"), text_value(&functions, text)));
    tidy_up();
}

void engine_rows(slice text) {
    begin();
    if (!functions.context) {
        send_fault("No functions were defined.", 400);
        return;
    }
    send_result(&functions, enter(&functions, api_function(&functions, "rows"), text_value(&functions, text)));
    if (!has_room()) {
        JSSynchronousGarbageCollectForDebugging(functions.context);
    }
}

/* ---- start-up ---- */

/* Uses everything that opens files or starts threads on first use: locales, time zones, the compilers, the collector, the watchdog. */
static const char warm_up[] = "(function () {"
                              "  new Date(0).toLocaleString(); new Intl.NumberFormat('de').format(1.5); 'a'.localeCompare('b');"
                              "  new Intl.DateTimeFormat('en', {timeZone: 'America/New_York'}).format(0); 'x'.normalize('NFD');"
                              "  /(a|b)*c/.test('abababc'); let n = 0; const f = (x) => x * 2 + 1;"
                              "  for (let i = 0; i < 20000; i++) { n += f(i) }"
                              "  return n; })()";

void engine_open(uint64_t limit_ms, size_t memory) {
    memory_bytes = memory;
    limit_ns = limit_ms * 1000000U;
    make_all_last_words(limit_ms);
    catch_signals();
    group = JSContextGroupCreate();
    buf source = buf_init(BUF_NO_LIMIT);
    buf_addf(&source, "(function (host) { 'use strict';\n%s\n})", engine_api_source);
    buf_add_byte(&source, 0);
    JSGlobalContextRef home = JSGlobalContextCreateInGroup(group, NULL);
    nothing = JSObjectMakeFunctionWithCallback(home, NULL, host_nothing);
    JSValueProtect(home, nothing);
    api_source = JSStringCreateWithUTF8CString(source.p);
    api_url = JSStringCreateWithUTF8CString("tesela:api");
    buf_free(&source);
    restart_clock();
    scene s = scene_open();
    JSStringRef text = JSStringCreateWithUTF8CString(warm_up);
    JSEvaluateScript(s.context, text, NULL, api_url, 1, NULL);
    JSStringRelease(text);
    scene_close(&s);
    tidy_up();
    JSSynchronousGarbageCollectForDebugging(spare.context);
}
