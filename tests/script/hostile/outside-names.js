// expects: done ["undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined"]
function f() {
    getContext().getResponse().setBody([
        typeof require, typeof process, typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics, typeof fetch, typeof setTimeout,
        typeof load, typeof print, typeof ShadowRealm, typeof FinalizationRegistry,
    ]);
}
