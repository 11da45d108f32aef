/* http2.h — HTTP/2 (RFC 9113), by nghttp2: the interface between http.c and http2.c. For the files of this folder.
 *
 * A connection begins as HTTP/1.1. http.c hands it over when TLS has chosen "h2" by ALPN, or when its first bytes are the preface of
 * HTTP/2 (prior knowledge). From then on streams become requests of the same front end, as carried.h has it. */
#pragma once

#include "net/loop_int.h"

#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
enum { HTTP2_PREFACE_BYTES = sizeof HTTP2_PREFACE - 1 };

typedef struct http_service http_service;
typedef struct http_switch http_switch;

/* What the connections of one port share: nghttp2's callbacks and options. */
typedef struct http2_setup http2_setup;
http2_setup *http2_setup_new(void);
void http2_setup_free(http2_setup *setup);

http_switch *http2_switch_new(const http_service *service); /* for the connection's `to`; the preface is among the bytes that follow */
void http2_free_streams(net_loop *loop);                    /* those that no request uses */
