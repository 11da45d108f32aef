// expects: any
<!-- x
function f() {}
--> y
