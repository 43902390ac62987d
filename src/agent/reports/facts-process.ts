import si from 'systeminformation'

/** Prints how many bytes the disks of this host hold. In a process that then ends: the memory that this takes is not the agent's. */
export async function printDiskSize(): Promise<void> {
  const fileSystems = await si.fsSize()
  const disks = new Map(fileSystems.map(({ fs, size }) => [fs, size]))
  process.stdout.write(String([...disks.values()].reduce((sum, size) => sum + size, 0)))
}
