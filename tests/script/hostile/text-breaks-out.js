// expects: any
function f() {}) ; getContext().getResponse().setBody("ran"); (function () {}
