# Synthesises and places the plugin out of context for a U55C at 250 MHz, and reports area and timing. In fpga/rtl, run:
#   vivado -mode batch -source opennic/build.tcl
# This script was never run, because the project has no Vivado. Its reports replace yosys' estimates in docs/notes/rtl.md.
set part xcu55c-fsvh2892-2L-e
set top olaf_opennic_250mhz
read_verilog -sv [concat sv/olaf_pkg.sv ../regmap/olaf_regs.svh \
  [lsearch -all -inline -not [glob sv/*.sv] sv/olaf_pkg.sv] [glob opennic/*.sv]]
synth_design -top $top -part $part -mode out_of_context -flatten_hierarchy rebuilt
create_clock -name axis_aclk -period 4.000 [get_ports axis_aclk]
create_clock -name axil_aclk -period 8.000 [get_ports axil_aclk]
# Register accesses cross clock domains by toggles through two flip-flops; their data is stable meanwhile.
set_clock_groups -asynchronous -group axis_aclk -group axil_aclk
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file utilization.rpt
report_timing_summary -max_paths 20 -file timing.rpt
