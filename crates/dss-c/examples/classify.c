/* Classifies a WAV file (16-bit, mono, at the model's rate): classify MODEL.safetensors WORD.wav */
#include "dss.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(int holds, const char *what) {
  if (!holds) { fprintf(stderr, "error: %s\n", what ? what : dss_error()); exit(1); }
}

int main(int argc, char **argv) {
  if (argc != 3) { fprintf(stderr, "usage: classify MODEL.safetensors WORD.wav\n"); return 2; }
  dss_model *model;
  need(dss_model_load(argv[1], &model) == DSS_OK, NULL);
  FILE *file = fopen(argv[2], "rb");
  unsigned char head[12], chunk[8], form[16] = {0}, pair[2];
  need(file && fread(head, 1, 12, file) == 12 && !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WAVE", 4), "not a WAV file");
  size_t bytes = 0, read = 0; /* of the chunk with the samples; others are skipped */
  while (fread(chunk, 1, 8, file) == 8) {
    bytes = chunk[4] | chunk[5] << 8 | chunk[6] << 16 | (size_t)chunk[7] << 24;
    if (!memcmp(chunk, "data", 4)) break;
    read = memcmp(chunk, "fmt ", 4) ? 0 : fread(form, 1, 16, file);
    fseek(file, (long)(bytes + bytes % 2) - (long)read, SEEK_CUR);
  }
  need(form[0] == 1 && form[2] == 1 && form[14] == 16, "not 16-bit samples of one channel");
  unsigned rate = form[4] | form[5] << 8 | (unsigned)form[6] << 16;
  need(rate == dss_model_rate(model), "not at the model's samples per second");
  size_t count = 0, room = dss_model_length(model), outputs = dss_model_outputs(model), best = 0;
  float *samples = calloc(room, sizeof *samples), *scores = calloc(outputs, sizeof *scores);
  while (count < room && count < bytes / 2 && fread(pair, 1, 2, file) == 2)
    samples[count++] = (float)(int16_t)(pair[0] | pair[1] << 8) / 32768.0f;
  need(dss_model_scale(model, samples, count) == DSS_OK, NULL);
  need(dss_forward_values(model, samples, count, scores, outputs) == DSS_OK, NULL);
  for (size_t i = 1; i < outputs; i++) if (scores[i] > scores[best]) best = i;
  const char *label = dss_model_label(model, best);
  printf("%s\t%.4f\n", label ? label : "?", scores[best]);
  dss_model_free(model);
  free(samples), free(scores), fclose(file);
  return 0;
}
