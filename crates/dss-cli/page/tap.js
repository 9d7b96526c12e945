// Hands on what comes in, 128 samples at a time. It runs in the audio thread.
registerProcessor(
  "tap",
  class extends AudioWorkletProcessor {
    process(inputs) {
      if (inputs[0].length) this.port.postMessage(inputs[0][0].slice());
      return true;
    }
  },
);
