/**
 * The text without the carriage return that a terminal puts before each line feed (ONLCR), over the borders of chunks: what
 * the program wrote, for a file or a pipe.
 */
export class LineEndings {
  #held = ''

  write(chunk: string): string {
    const text = this.#held + chunk
    // A carriage return at the end may be half of a line's end.
    this.#held = text.endsWith('\r') ? '\r' : ''
    return text.slice(0, text.length - this.#held.length).replaceAll('\r\n', '\n')
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
