#include "base/budget.h"

static size_t past_own(const budget *b, size_t used) {
    return used > b->own ? used - b->own : 0;
}

/* Draws enough from the pool for `n` more bytes; `forced`: even above the pool's limit. */
static bool draw(budget *b, size_t n, bool forced) {
    size_t need = past_own(b, b->used + n);
    if (!b->pool || need <= b->drawn) {
        return true;
    }
    size_t more = (need - b->drawn + BUDGET_STEP - 1) / BUDGET_STEP * BUDGET_STEP;
    size_t before = atomic_fetch_add_explicit(&b->pool->used, more, memory_order_relaxed);
    bool fits = before <= b->pool->max && more <= b->pool->max - before;
    if (!fits && !forced) {
        atomic_fetch_sub_explicit(&b->pool->used, more, memory_order_relaxed);
    } else {
        b->drawn += more;
    }
    if (!fits) {
        b->starved = b->starved || !b->exceeded; /* the limit that was exceeded first is the reason */
        b->exceeded = true;
    }
    return fits || forced;
}

bool budget_take(budget *b, size_t n) {
    if (n > b->max || b->used > b->max - n) {
        b->exceeded = true;
        return false;
    }
    if (!draw(b, n, false)) {
        return false;
    }
    b->used += n;
    return true;
}

void budget_force(budget *b, size_t n) {
    if (n > b->max || b->used > b->max - n) {
        b->exceeded = true;
    }
    draw(b, n, true);
    b->used += n;
    if (b->used > b->max && b->used - b->max > b->overrun) {
        b->overrun = b->used - b->max;
    }
}

void budget_give(budget *b, size_t n) {
    b->used = b->used > n ? b->used - n : 0;
    size_t need = past_own(b, b->used), spare = b->drawn > need ? b->drawn - need : 0;
    if (b->pool && spare >= 16 * (size_t)BUDGET_STEP) { /* much was freed: return it, others may need it */
        size_t back = spare / BUDGET_STEP * BUDGET_STEP;
        b->drawn -= back;
        atomic_fetch_sub_explicit(&b->pool->used, back, memory_order_relaxed);
    }
}

void budget_renew(budget *b) {
    b->exceeded = b->starved = false;
}

void budget_end(budget *b) {
    if (b->pool && b->drawn) {
        atomic_fetch_sub_explicit(&b->pool->used, b->drawn, memory_order_relaxed);
    }
    b->drawn = 0;
}

err budget_error(const budget *b) {
    return !b->exceeded ? OK : b->starved ? E_BUSY_MEMORY : E_MEMORY;
}
