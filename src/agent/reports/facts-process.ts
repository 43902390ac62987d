/** Prints how many bytes the disks of this host hold, and ends: the memory that this takes is then not the agent's. */
import si from 'systeminformation'

const fileSystems = await si.fsSize()
const disks = new Map(fileSystems.map(({ fs, size }) => [fs, size]))
process.stdout.write(String([...disks.values()].reduce((sum, size) => sum + size, 0)))
