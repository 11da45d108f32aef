/* hex.h — hexadecimal digits. buf_add_hex writes them. */
#pragma once

/* 0 to 15, in either letter case; -1: not a digit. */
static inline int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
