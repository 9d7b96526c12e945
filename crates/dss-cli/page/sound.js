// @ts-check
// Where sound comes from: a file, or a microphone.

const Sound = (() => {
  const MAX_FILE = 200e6;

  /** Where the script of the audio thread is. In a folder, only one within its own address may be loaded. */
  async function tapAddress() {
    if (location.protocol !== "file:") return "tap.js";
    return `data:text/javascript,${encodeURIComponent(new TextDecoder().decode(await Assets.bytes("tap.js")))}`;
  }

  /**
   * The samples of a sound file, as one channel at a rate.
   * @param {ArrayBuffer} file @param {number} rate
   * @returns {Promise<AudioBuffer>}
   */
  async function decode(file, rate) {
    if (file.byteLength > MAX_FILE) throw new Error("this file is too long for the page; cut it first");
    const context = new OfflineAudioContext(1, 1, rate);
    try {
      return await context.decodeAudioData(file.slice(0));
    } catch {
      throw new Error("this is not a sound file that the browser can read; try WAV, FLAC, MP3 or Ogg");
    }
  }

  /** The mean of all channels. @param {AudioBuffer} buffer */
  function mono(buffer) {
    const mixed = buffer.getChannelData(0).slice();
    for (let c = 1; c < buffer.numberOfChannels; c++) {
      const channel = buffer.getChannelData(c);
      for (let i = 0; i < mixed.length; i++) mixed[i] += channel[i];
    }
    if (buffer.numberOfChannels > 1) for (let i = 0; i < mixed.length; i++) mixed[i] /= buffer.numberOfChannels;
    return mixed;
  }

  /**
   * Listens to the microphone until `stop` is called. Browsers that cannot resample it hear it at their own rate.
   * @param {number} rate samples per second wished for
   * @param {(samples: Float32Array) => void} heard
   * @returns {Promise<{ rate: number, stop: () => void }>}
   */
  async function microphone(rate, heard) {
    if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode)
      throw new Error("the browser allows the microphone only for pages from https, localhost or a folder");
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({
        audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false },
      });
    } catch (error) {
      const refused = error instanceof DOMException && error.name === "NotAllowedError";
      throw new Error(
        refused
          ? "the microphone is blocked; allow it in the address bar, or open a sound file"
          : `no microphone could be opened (${error instanceof Error ? error.message : error})`,
      );
    }
    let context = new AudioContext({ sampleRate: rate });
    const stop = () => {
      for (const track of stream.getTracks()) track.stop();
      context.close();
    };
    try {
      let source;
      try {
        source = context.createMediaStreamSource(stream);
      } catch {
        context.close();
        context = new AudioContext();
        source = context.createMediaStreamSource(stream);
      }
      await context.audioWorklet.addModule(await tapAddress());
      const tap = new AudioWorkletNode(context, "tap", { numberOfInputs: 1, numberOfOutputs: 0 });
      tap.port.onmessage = ({ data }) => heard(data);
      source.connect(tap);
      await context.resume();
    } catch (error) {
      stop();
      throw error;
    }
    return { rate: context.sampleRate, stop };
  }

  /**
   * Plays sound aloud; the answer stops it.
   * @param {Float32Array} samples @param {number} rate @param {() => void} ended
   */
  function play(samples, rate, ended) {
    const context = new AudioContext();
    const buffer = context.createBuffer(1, samples.length, rate);
    buffer.copyToChannel(/** @type {Float32Array<ArrayBuffer>} */ (samples), 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    source.onended = () => {
      context.close();
      ended();
    };
    source.start();
    return { seconds: () => context.currentTime, stop: () => source.stop() };
  }

  return { decode, mono, microphone, play };
})();
