/**
 * The text without the carriage return that a terminal puts before each line feed (ONLCR), over the borders of chunks: what
 * the program wrote, for a file or a pipe.
 */
export class LineEndings {
  #pending = ''

  write(chunk: string): string {
    const text = this.#pending + chunk
    // A carriage return at the end may be half of a line's end.
    this.#pending = text.endsWith('\r') ? '\r' : ''
    return text.slice(0, text.length - this.#pending.length).replaceAll('\r\n', '\n')
  }

  end(): string {
    const rest = this.#pending
    this.#pending = ''
    return rest
  }
}
