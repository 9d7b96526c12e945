/* Trained Diagonal State Space models: files of `dss export`, run without any framework.
 *
 * Functions that can fail return DSS_OK or another code; dss_error() then says why. A model may be used by several
 * threads at once, a stream by one at a time. Free a stream before its model is freed or after: both are safe. */
#ifndef DSS_H
#define DSS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  DSS_OK = 0,
  DSS_ERROR_ARGUMENT = 1, /* a null pointer, a text that is not UTF-8, or numbers that do not fit the model */
  DSS_ERROR_FILE = 2,     /* the file cannot be read, or is not a model */
  DSS_ERROR_MODEL = 3,    /* the model cannot do this: it cannot stream, or the stream has reached its end */
  DSS_ERROR_OVERFLOW = 4, /* the numbers left the range of float; reset the stream */
  DSS_ERROR_PANIC = 5     /* a bug in the library: please report it */
};

typedef struct dss_model dss_model;
typedef struct dss_stream dss_stream;

/* What went wrong in the last failed call of this thread; never null. */
const char *dss_error(void);

/* The model in a file, or in memory; freed with dss_model_free. */
int dss_model_load(const char *path, dss_model **model);
int dss_model_from_bytes(const uint8_t *bytes, size_t len, dss_model **model);
void dss_model_free(dss_model *model);

/* Numbers per position of the input; 0 for a model of tokens, which has a vocabulary instead. */
size_t dss_model_channels(const dss_model *model);
size_t dss_model_vocabulary(const dss_model *model);
/* L: the length it was trained at. */
size_t dss_model_length(const dss_model *model);
/* Numbers in an answer, and whether there is one at every position. */
size_t dss_model_outputs(const dss_model *model);
int dss_model_answers_every_position(const dss_model *model);
/* The name of a class as UTF-8; null if it has none. It lives as long as the model. */
const char *dss_model_label(const dss_model *model, size_t output);
/* Samples per second of a model of sound; 0 for others. dss_model_scale makes its input of samples from -1 to 1. */
double dss_model_rate(const dss_model *model);
int dss_model_scale(const dss_model *model, float *samples, size_t count);

/* A whole sequence of `positions`: values are [positions, channels]. `out` has room for out_len numbers, as many as
 * there are answers times dss_model_outputs. */
int dss_forward_values(const dss_model *model, const float *values, size_t positions, float *out, size_t out_len);
int dss_forward_tokens(const dss_model *model, const uint32_t *tokens, size_t positions, float *out, size_t out_len);

/* A stream: it takes positions as they arrive. `out` gets the answer after the last one, or nothing if out_len is 0. */
int dss_stream_new(const dss_model *model, dss_stream **stream);
int dss_stream_push_values(dss_stream *stream, const float *values, size_t positions, float *out, size_t out_len);
int dss_stream_push_tokens(dss_stream *stream, const uint32_t *tokens, size_t positions, float *out, size_t out_len);
int dss_stream_reset(dss_stream *stream);
void dss_stream_free(dss_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
