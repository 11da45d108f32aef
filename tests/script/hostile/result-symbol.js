// expects: done
function f() {
    getContext().getResponse().setBody(Symbol.iterator.description && function () {});
}
