// expects: done 1
function f() {
    const response = getContext().getResponse();
    for (const name of Object.getOwnPropertyNames(globalThis)) {
        try { delete globalThis[name]; } catch (e) {}
    }
    response.setBody(1);
}
