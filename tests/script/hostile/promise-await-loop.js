// expects: stopped
async function f() {
    for (;;) await 0;
}
