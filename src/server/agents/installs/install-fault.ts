/** Why an agent could not be installed, as the result of its host says it. */
export class InstallFault extends Error {
  /** As `ssh` has it: 255 where SSH itself failed, else that of what ran on the host. */
  readonly exitCode: number

  constructor(message: string, exitCode = 255) {
    super(message)
    this.exitCode = exitCode
  }
}
