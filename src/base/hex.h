/* hex.h — hexadecimal digits. buf_add_hex writes them in upper case. */
#pragma once

#include <stdint.h>

/* 0 to 15, in either letter case; -1: not a digit. */
static inline int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Two digits, in lower case. */
static inline void hex_write(uint8_t byte, char text[2]) {
    text[0] = "0123456789abcdef"[byte >> 4];
    text[1] = "0123456789abcdef"[byte & 15];
}
