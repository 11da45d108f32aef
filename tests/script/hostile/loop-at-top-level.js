// expects: stopped
for (;;);
function f() {}
