// expects: fault
function f() {} }); getContext().getResponse().setBody("ran"); (function () {
