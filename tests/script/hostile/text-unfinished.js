// expects: fault
function f() { /*
