// expects: fault

