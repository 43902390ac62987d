import { RsmError } from '../../core/errors.ts'

/** A mistake in the words typed. oclif rewrites the message of what a `parse` throws, so the sentence stands beside it. */
export class Misuse extends RsmError {
  sentence: string

  constructor(sentence: string) {
    super('usage', sentence)
    this.sentence = sentence
  }
}
