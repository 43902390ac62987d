/** Removes the carriage returns that a terminal adds before line feeds (ONLCR), across chunks. */
export class LineEndings {
  #pending = ''

  write(chunk: string): string {
    const text = this.#pending + chunk
    // A final carriage return may be half of a line end.
    this.#pending = text.endsWith('\r') ? '\r' : ''
    return text.slice(0, text.length - this.#pending.length).replaceAll('\r\n', '\n')
  }

  end(): string {
    const rest = this.#pending
    this.#pending = ''
    return rest
  }
}
