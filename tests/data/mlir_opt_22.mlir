// What mlir-opt 22.1.8 (Debian's mlir-22-tools, 1:22.1.8-1~deb12u1) makes of the texts in tests/mlir with
// --affine-super-vectorize and the options of each case; loops are vectorized by 16, reductions included.
// -----
// vector_add_2d by 256
module {
  func.func @vector_add_2d(%arg0: index, %arg1: index) -> f32 {
    %alloc = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %alloc_0 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %alloc_1 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %cst = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 2.000000e+00 : f32
    affine.for %arg2 = 0 to %arg0 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<1.000000e+00> : vector<256xf32>
        vector.transfer_write %cst_3, %alloc[%arg2, %arg3] : vector<256xf32>, memref<?x?xf32>
      }
    }
    affine.for %arg2 = 0 to %arg0 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<2.000000e+00> : vector<256xf32>
        vector.transfer_write %cst_3, %alloc_0[%arg2, %arg3] : vector<256xf32>, memref<?x?xf32>
      }
    }
    affine.for %arg2 = 0 to %arg0 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<2.000000e+00> : vector<256xf32>
        %cst_4 = arith.constant dense<1.000000e+00> : vector<256xf32>
        %1 = ub.poison : f32
        %2 = vector.transfer_read %alloc[%arg2, %arg3], %1 : memref<?x?xf32>, vector<256xf32>
        %3 = ub.poison : f32
        %4 = vector.transfer_read %alloc_0[%arg2, %arg3], %3 : memref<?x?xf32>, vector<256xf32>
        %5 = arith.addf %2, %4 : vector<256xf32>
        %6 = arith.addf %5, %cst_4 : vector<256xf32>
        %7 = arith.addf %5, %cst_3 : vector<256xf32>
        %8 = arith.addf %7, %6 : vector<256xf32>
        vector.transfer_write %8, %alloc_1[%arg2, %arg3] : vector<256xf32>, memref<?x?xf32>
      }
    }
    %c7 = arith.constant 7 : index
    %c42 = arith.constant 42 : index
    %0 = memref.load %alloc_1[%c7, %c42] : memref<?x?xf32>
    return %0 : f32
  }
}
// -----
// vector_add_2d by 32x256
module {
  func.func @vector_add_2d(%arg0: index, %arg1: index) -> f32 {
    %alloc = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %alloc_0 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %alloc_1 = memref.alloc(%arg0, %arg1) : memref<?x?xf32>
    %cst = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 2.000000e+00 : f32
    affine.for %arg2 = 0 to %arg0 step 32 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<1.000000e+00> : vector<32x256xf32>
        vector.transfer_write %cst_3, %alloc[%arg2, %arg3] : vector<32x256xf32>, memref<?x?xf32>
      }
    }
    affine.for %arg2 = 0 to %arg0 step 32 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<2.000000e+00> : vector<32x256xf32>
        vector.transfer_write %cst_3, %alloc_0[%arg2, %arg3] : vector<32x256xf32>, memref<?x?xf32>
      }
    }
    affine.for %arg2 = 0 to %arg0 step 32 {
      affine.for %arg3 = 0 to %arg1 step 256 {
        %cst_3 = arith.constant dense<2.000000e+00> : vector<32x256xf32>
        %cst_4 = arith.constant dense<1.000000e+00> : vector<32x256xf32>
        %1 = ub.poison : f32
        %2 = vector.transfer_read %alloc[%arg2, %arg3], %1 : memref<?x?xf32>, vector<32x256xf32>
        %3 = ub.poison : f32
        %4 = vector.transfer_read %alloc_0[%arg2, %arg3], %3 : memref<?x?xf32>, vector<32x256xf32>
        %5 = arith.addf %2, %4 : vector<32x256xf32>
        %6 = arith.addf %5, %cst_4 : vector<32x256xf32>
        %7 = arith.addf %5, %cst_3 : vector<32x256xf32>
        %8 = arith.addf %7, %6 : vector<32x256xf32>
        vector.transfer_write %8, %alloc_1[%arg2, %arg3] : vector<32x256xf32>, memref<?x?xf32>
      }
    }
    %c7 = arith.constant 7 : index
    %c42 = arith.constant 42 : index
    %0 = memref.load %alloc_1[%c7, %c42] : memref<?x?xf32>
    return %0 : f32
  }
}
// -----
// vecred by 128
#map = affine_map<(d0) -> (-d0 + 500)>
module {
  func.func @vecred(%arg0: memref<512xf32>) -> f32 {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<0.000000e+00> : vector<128xf32>
    %0 = affine.for %arg1 = 0 to 500 step 128 iter_args(%arg2 = %cst_0) -> (vector<128xf32>) {
      %2 = affine.apply #map(%arg1)
      %3 = vector.create_mask %2 : vector<128xi1>
      %4 = ub.poison : f32
      %5 = vector.transfer_read %arg0[%arg1], %4 : memref<512xf32>, vector<128xf32>
      %6 = math.cos %5 : vector<128xf32>
      %7 = arith.select %3, %6, %cst_0 : vector<128xi1>, vector<128xf32>
      %8 = arith.addf %arg2, %7 : vector<128xf32>
      affine.yield %8 : vector<128xf32>
    }
    %1 = vector.reduction <add>, %0 : vector<128xf32> into f32
    return %1 : f32
  }
}
// -----
// one loop
module {
  func.func @f(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: f32, %arg3: index) {
    %0 = vector.broadcast %arg2 : f32 to vector<128xf32>
    affine.for %arg4 = 0 to %arg3 step 128 {
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%arg4], %1 : memref<?xf32>, vector<128xf32>
      %3 = arith.mulf %2, %0 : vector<128xf32>
      vector.transfer_write %3, %arg1[%arg4] : vector<128xf32>, memref<?xf32>
    }
    return
  }
}
// -----
// broadcasts
#map = affine_map<(d0) -> (0)>
module {
  func.func @f(%arg0: memref<?x?xf64>, %arg1: memref<?xf64>, %arg2: memref<?xf64>, %arg3: memref<?x?xf64>, %arg4: index, %arg5: index) {
    affine.for %arg6 = 0 to %arg4 {
      affine.for %arg7 = 0 to %arg5 step 64 {
        %0 = ub.poison : f64
        %1 = vector.transfer_read %arg0[%arg6, %arg7], %0 : memref<?x?xf64>, vector<64xf64>
        %2 = ub.poison : f64
        %3 = vector.transfer_read %arg1[%arg6], %2 {permutation_map = #map} : memref<?xf64>, vector<64xf64>
        %4 = ub.poison : f64
        %5 = vector.transfer_read %arg2[%arg7], %4 : memref<?xf64>, vector<64xf64>
        %6 = arith.mulf %1, %3 : vector<64xf64>
        %7 = arith.addf %6, %5 : vector<64xf64>
        vector.transfer_write %7, %arg3[%arg6, %arg7] : vector<64xf64>, memref<?x?xf64>
      }
    }
    return
  }
}
// -----
// stencil
#map = affine_map<(d0) -> (d0 - 1)>
#map1 = affine_map<(d0) -> (d0 + 1)>
module {
  func.func @f(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: index) {
    affine.for %arg3 = 1 to %arg2 step 32 {
      %0 = affine.apply #map(%arg3)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<?xf32>, vector<32xf32>
      %3 = ub.poison : f32
      %4 = vector.transfer_read %arg0[%arg3], %3 : memref<?xf32>, vector<32xf32>
      %5 = affine.apply #map1(%arg3)
      %6 = ub.poison : f32
      %7 = vector.transfer_read %arg0[%5], %6 : memref<?xf32>, vector<32xf32>
      %8 = arith.addf %2, %4 : vector<32xf32>
      %9 = arith.addf %8, %7 : vector<32xf32>
      vector.transfer_write %9, %arg1[%arg3] : vector<32xf32>, memref<?xf32>
    }
    return
  }
}
// -----
// select
module {
  func.func @f(%arg0: memref<?xi32>, %arg1: memref<?xi32>, %arg2: index) {
    %c0_i32 = arith.constant 0 : i32
    %c10_i32 = arith.constant 10 : i32
    affine.for %arg3 = 0 to %arg2 step 16 {
      %cst = arith.constant dense<10> : vector<16xi32>
      %cst_0 = arith.constant dense<0> : vector<16xi32>
      %0 = ub.poison : i32
      %1 = vector.transfer_read %arg0[%arg3], %0 : memref<?xi32>, vector<16xi32>
      %2 = arith.cmpi sgt, %1, %cst_0 : vector<16xi32>
      %3 = arith.muli %1, %cst : vector<16xi32>
      %4 = arith.select %2, %3, %cst_0 : vector<16xi1>, vector<16xi32>
      vector.transfer_write %4, %arg1[%arg3] : vector<16xi32>, memref<?xi32>
    }
    return
  }
}
// -----
// conversion, no lane left over
module {
  func.func @f(%arg0: memref<64xf32>, %arg1: memref<64xf64>) {
    affine.for %arg2 = 0 to 64 step 16 {
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<64xf32>, vector<16xf32>
      %2 = arith.extf %1 : vector<16xf32> to vector<16xf64>
      %3 = math.exp %2 : vector<16xf64>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf64>, memref<64xf64>
    }
    return
  }
}
// -----
// three loops by 8
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 {
      affine.for %arg6 = 0 to %arg3 {
        affine.for %arg7 = 0 to %arg4 step 8 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg5, %arg6, %arg7], %0 : memref<?x?x?xf32>, vector<8xf32>
          %2 = arith.negf %1 : vector<8xf32>
          vector.transfer_write %2, %arg1[%arg5, %arg6, %arg7] : vector<8xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// three loops by 4x8
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 {
      affine.for %arg6 = 0 to %arg3 step 4 {
        affine.for %arg7 = 0 to %arg4 step 8 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg5, %arg6, %arg7], %0 : memref<?x?x?xf32>, vector<4x8xf32>
          %2 = arith.negf %1 : vector<4x8xf32>
          vector.transfer_write %2, %arg1[%arg5, %arg6, %arg7] : vector<4x8xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// three loops by 2x4x8
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 step 2 {
      affine.for %arg6 = 0 to %arg3 step 4 {
        affine.for %arg7 = 0 to %arg4 step 8 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg5, %arg6, %arg7], %0 : memref<?x?x?xf32>, vector<2x4x8xf32>
          %2 = arith.negf %1 : vector<2x4x8xf32>
          vector.transfer_write %2, %arg1[%arg5, %arg6, %arg7] : vector<2x4x8xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// rows as columns
#map = affine_map<(d0, d1) -> (d1, d0)>
module {
  func.func @f(%arg0: memref<?x?xf32>, %arg1: memref<?x?xf32>, %arg2: index, %arg3: index) {
    affine.for %arg4 = 0 to %arg2 step 8 {
      affine.for %arg5 = 0 to %arg3 step 16 {
        %0 = ub.poison : f32
        %1 = vector.transfer_read %arg0[%arg5, %arg4], %0 {permutation_map = #map} : memref<?x?xf32>, vector<8x16xf32>
        vector.transfer_write %1, %arg1[%arg5, %arg4] {permutation_map = #map} : vector<8x16xf32>, memref<?x?xf32>
      }
    }
    return
  }
}
// -----
// imperfect nest, rows inside
#map = affine_map<(d0, d1, d2) -> (d2, d1)>
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 step 32 {
      affine.for %arg6 = 0 to %arg3 step 256 {
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg7, %arg6, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg1[%arg7, %arg6, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
      }
      affine.for %arg6 = 0 to %arg3 {
        affine.for %arg7 = 0 to %arg4 step 256 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg1[%arg6, %arg7, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
        affine.for %arg7 = 0 to %arg4 step 256 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg0[%arg6, %arg7, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// imperfect nest, planes inside
#map = affine_map<(d0, d1, d2) -> (d2, d0)>
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 step 32 {
      affine.for %arg6 = 0 to %arg3 {
        affine.for %arg7 = 0 to %arg4 step 256 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg7, %arg6, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg1[%arg7, %arg6, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
      }
      affine.for %arg6 = 0 to %arg3 step 256 {
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg1[%arg6, %arg7, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 {permutation_map = #map} : memref<?x?x?xf32>, vector<32x256xf32>
          vector.transfer_write %1, %arg0[%arg6, %arg7, %arg5] {permutation_map = #map} : vector<32x256xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// imperfect nest by rows
module {
  func.func @f(%arg0: memref<?x?x?xf32>, %arg1: memref<?x?x?xf32>, %arg2: index, %arg3: index, %arg4: index) {
    affine.for %arg5 = 0 to %arg2 step 32 {
      affine.for %arg6 = 0 to %arg3 {
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg7, %arg6, %arg5], %0 : memref<?x?x?xf32>, vector<32xf32>
          vector.transfer_write %1, %arg1[%arg7, %arg6, %arg5] : vector<32xf32>, memref<?x?x?xf32>
        }
      }
      affine.for %arg6 = 0 to %arg3 {
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 : memref<?x?x?xf32>, vector<32xf32>
          vector.transfer_write %1, %arg1[%arg6, %arg7, %arg5] : vector<32xf32>, memref<?x?x?xf32>
        }
        affine.for %arg7 = 0 to %arg4 {
          %0 = ub.poison : f32
          %1 = vector.transfer_read %arg0[%arg6, %arg7, %arg5], %0 : memref<?x?x?xf32>, vector<32xf32>
          vector.transfer_write %1, %arg0[%arg6, %arg7, %arg5] : vector<32xf32>, memref<?x?x?xf32>
        }
      }
    }
    return
  }
}
// -----
// two nests
#map = affine_map<(d0) -> (d0 + 4)>
module {
  func.func @f(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: memref<?xf32>, %arg3: index) {
    affine.for %arg4 = 0 to %arg3 step 64 {
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg4], %0 : memref<?xf32>, vector<64xf32>
      vector.transfer_write %1, %arg1[%arg4] : vector<64xf32>, memref<?xf32>
    }
    affine.for %arg4 = #map(%arg3) to 1024 step 64 {
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg1[%arg4], %0 : memref<?xf32>, vector<64xf32>
      %2 = math.sqrt %1 : vector<64xf32>
      vector.transfer_write %2, %arg2[%arg4] : vector<64xf32>, memref<?xf32>
    }
    return
  }
}
// -----
// product
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xf64>, %arg1: index) -> f64 {
    %cst = arith.constant 1.000000e+00 : f64
    %cst_0 = arith.constant dense<1.000000e+00> : vector<64xf64>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst_0) -> (vector<64xf64>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : f64
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xf64>, vector<64xf64>
      %6 = arith.select %3, %5, %cst_0 : vector<64xi1>, vector<64xf64>
      %7 = arith.mulf %arg3, %6 : vector<64xf64>
      affine.yield %7 : vector<64xf64>
    }
    %1 = vector.reduction <mul>, %0 : vector<64xf64> into f64
    return %1 : f64
  }
}
// -----
// sum of integers
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi32>, %arg1: index) -> i32 {
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant dense<0> : vector<64xi32>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi32>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : i32
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xi32>, vector<64xi32>
      %6 = arith.select %3, %5, %cst : vector<64xi1>, vector<64xi32>
      %7 = arith.addi %arg3, %6 : vector<64xi32>
      affine.yield %7 : vector<64xi32>
    }
    %1 = vector.reduction <add>, %0 : vector<64xi32> into i32
    return %1 : i32
  }
}
// -----
// largest
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: index) -> f32 {
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant dense<0xFF800000> : vector<64xf32>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst_0) -> (vector<64xf32>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : f32
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xf32>, vector<64xf32>
      %6 = arith.select %3, %5, %cst_0 : vector<64xi1>, vector<64xf32>
      %7 = arith.maximumf %arg3, %6 : vector<64xf32>
      affine.yield %7 : vector<64xf32>
    }
    %1 = vector.reduction <maximumf>, %0 : vector<64xf32> into f32
    return %1 : f32
  }
}
// -----
// least integer
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi64>, %arg1: index) -> i64 {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant dense<9223372036854775807> : vector<64xi64>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi64>) {
      %3 = affine.apply #map(%arg2)[%arg1]
      %4 = vector.create_mask %3 : vector<64xi1>
      %5 = ub.poison : i64
      %6 = vector.transfer_read %arg0[%arg2], %5 : memref<1024xi64>, vector<64xi64>
      %7 = arith.select %4, %6, %cst : vector<64xi1>, vector<64xi64>
      %8 = arith.minsi %arg3, %7 : vector<64xi64>
      affine.yield %8 : vector<64xi64>
    }
    %1 = vector.reduction <minsi>, %0 : vector<64xi64> into i64
    %2 = arith.minsi %1, %c0_i64 : i64
    return %2 : i64
  }
}
// -----
// least unsigned integer
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi64>, %arg1: index) -> i64 {
    %c-1_i64 = arith.constant -1 : i64
    %cst = arith.constant dense<-1> : vector<64xi64>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi64>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : i64
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xi64>, vector<64xi64>
      %6 = arith.select %3, %5, %cst : vector<64xi1>, vector<64xi64>
      %7 = arith.minui %arg3, %6 : vector<64xi64>
      affine.yield %7 : vector<64xi64>
    }
    %1 = vector.reduction <minui>, %0 : vector<64xi64> into i64
    return %1 : i64
  }
}
// -----
// largest unsigned integer
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi8>, %arg1: index) -> i8 {
    %c0_i8 = arith.constant 0 : i8
    %cst = arith.constant dense<0> : vector<64xi8>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi8>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : i8
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xi8>, vector<64xi8>
      %6 = arith.select %3, %5, %cst : vector<64xi1>, vector<64xi8>
      %7 = arith.maxui %arg3, %6 : vector<64xi8>
      affine.yield %7 : vector<64xi8>
    }
    %1 = vector.reduction <maxui>, %0 : vector<64xi8> into i8
    return %1 : i8
  }
}
// -----
// all bits
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi32>, %arg1: index) -> i32 {
    %c-1_i32 = arith.constant -1 : i32
    %cst = arith.constant dense<-1> : vector<64xi32>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi32>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : i32
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xi32>, vector<64xi32>
      %6 = arith.select %3, %5, %cst : vector<64xi1>, vector<64xi32>
      %7 = arith.andi %arg3, %6 : vector<64xi32>
      affine.yield %7 : vector<64xi32>
    }
    %1 = vector.reduction <and>, %0 : vector<64xi32> into i32
    return %1 : i32
  }
}
// -----
// any bit
#map = affine_map<(d0)[s0] -> (-d0 + s0)>
module {
  func.func @f(%arg0: memref<1024xi32>, %arg1: index) -> i32 {
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant dense<0> : vector<64xi32>
    %0 = affine.for %arg2 = 0 to %arg1 step 64 iter_args(%arg3 = %cst) -> (vector<64xi32>) {
      %2 = affine.apply #map(%arg2)[%arg1]
      %3 = vector.create_mask %2 : vector<64xi1>
      %4 = ub.poison : i32
      %5 = vector.transfer_read %arg0[%arg2], %4 : memref<1024xi32>, vector<64xi32>
      %6 = arith.select %3, %5, %cst : vector<64xi1>, vector<64xi32>
      %7 = arith.ori %arg3, %6 : vector<64xi32>
      affine.yield %7 : vector<64xi32>
    }
    %1 = vector.reduction <or>, %0 : vector<64xi32> into i32
    return %1 : i32
  }
}
// -----
// reductions not asked for
module {
  func.func @f(%arg0: memref<1024xi32>, %arg1: index) -> i32 {
    %c0_i32 = arith.constant 0 : i32
    %0 = affine.for %arg2 = 0 to %arg1 iter_args(%arg3 = %c0_i32) -> (i32) {
      %1 = affine.load %arg0[%arg2] : memref<1024xi32>
      %2 = arith.addi %arg3, %1 : i32
      affine.yield %2 : i32
    }
    return %0 : i32
  }
}
// -----
// loop: part of an array
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 500 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<1024xf32>, vector<16xf32>
      %2 = arith.addf %1, %cst_0 : vector<16xf32>
      vector.transfer_write %2, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: from the middle
#map = affine_map<(d0) -> (d0 + 5)>
#map1 = affine_map<(d0) -> (d0 - 3)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 3 to 77 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      %4 = affine.apply #map1(%arg2)
      vector.transfer_write %3, %arg1[%4] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: fewer than lanes
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 5 to 9 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<1024xf32>, vector<16xf32>
      %2 = arith.addf %1, %cst_0 : vector<16xf32>
      vector.transfer_write %2, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: none at all
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 9 to 5 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<1024xf32>, vector<16xf32>
      %2 = arith.addf %1, %cst_0 : vector<16xf32>
      vector.transfer_write %2, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: every other element
#map = affine_map<(d0) -> (d0 * 2)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 500 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: to every third element
#map = affine_map<(d0) -> (d0 * 3 + 1)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 300 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<1024xf32>, vector<16xf32>
      %2 = arith.addf %1, %cst_0 : vector<16xf32>
      %3 = affine.apply #map(%arg2)
      vector.transfer_write %2, %arg1[%3] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: backwards
#map = affine_map<(d0) -> (-d0 + 511)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 500 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: pairs
#map = affine_map<(d0) -> (d0 floordiv 2)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 500 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: round and round
#map = affine_map<(d0) -> (d0 mod 16)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 500 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: a step of two
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 501 step 32 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = ub.poison : f32
      %1 = vector.transfer_read %arg0[%arg2], %0 : memref<1024xf32>, vector<16xf32>
      %2 = arith.addf %1, %cst_0 : vector<16xf32>
      vector.transfer_write %2, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: a step of five
#map = affine_map<(d0) -> (d0 * 2)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 2 to 498 step 80 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map(%arg2)
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: a triangle
#map = affine_map<(d0) -> (d0 + 1)>
#map1 = affine_map<(d0, d1) -> (d0 * 32 + d1)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 31 {
      affine.for %arg3 = 0 to #map(%arg2) step 16 {
        %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
        %0 = affine.apply #map1(%arg3, %arg2)
        %1 = ub.poison : f32
        %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
        %3 = arith.addf %2, %cst_0 : vector<16xf32>
        %4 = affine.apply #map1(%arg2, %arg3)
        vector.transfer_write %3, %arg1[%4] : vector<16xf32>, memref<1024xf32>
      }
    }
    return
  }
}
// -----
// loop: two bounds
#map = affine_map<(d0) -> (d0 - 3, 1)>
#map1 = affine_map<(d0) -> (d0 + 9, 27)>
#map2 = affine_map<(d0, d1) -> (d0 * 32 + d1)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 31 {
      affine.for %arg3 = max #map(%arg2) to min #map1(%arg2) step 16 {
        %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
        %0 = affine.apply #map2(%arg2, %arg3)
        %1 = ub.poison : f32
        %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
        %3 = arith.addf %2, %cst_0 : vector<16xf32>
        %4 = affine.apply #map2(%arg2, %arg3)
        vector.transfer_write %3, %arg1[%4] : vector<16xf32>, memref<1024xf32>
      }
    }
    return
  }
}
// -----
// loop: along the columns
#map = affine_map<(d0, d1) -> (d0 * 32 + d1)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 30 {
      affine.for %arg3 = 0 to 20 step 16 {
        %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
        %0 = affine.apply #map(%arg2, %arg3)
        %1 = ub.poison : f32
        %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
        %3 = arith.addf %2, %cst_0 : vector<16xf32>
        %4 = affine.apply #map(%arg3, %arg2)
        vector.transfer_write %3, %arg1[%4] : vector<16xf32>, memref<1024xf32>
      }
    }
    return
  }
}
// -----
// loop: one element for all
#map = affine_map<() -> (7)>
#map1 = affine_map<(d0) -> (0)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 100 step 16 {
      %cst_0 = arith.constant dense<1.000000e+00> : vector<16xf32>
      %0 = affine.apply #map()
      %1 = ub.poison : f32
      %2 = vector.transfer_read %arg0[%0], %1 {permutation_map = #map1} : memref<1024xf32>, vector<16xf32>
      %3 = arith.addf %2, %cst_0 : vector<16xf32>
      vector.transfer_write %3, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
    }
    return
  }
}
// -----
// loop: a sum into an element
#map = affine_map<(d0) -> (-d0 + 500)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant dense<0.000000e+00> : vector<16xf32>
    %0 = affine.for %arg2 = 0 to 500 step 16 iter_args(%arg3 = %cst_0) -> (vector<16xf32>) {
      %3 = affine.apply #map(%arg2)
      %4 = vector.create_mask %3 : vector<16xi1>
      %5 = ub.poison : f32
      %6 = vector.transfer_read %arg0[%arg2], %5 : memref<1024xf32>, vector<16xf32>
      %7 = arith.select %4, %6, %cst_0 : vector<16xi1>, vector<16xf32>
      %8 = arith.addf %arg3, %7 : vector<16xf32>
      affine.yield %8 : vector<16xf32>
    }
    %1 = vector.reduction <add>, %0 : vector<16xf32> into f32
    %2 = arith.addf %1, %cst : f32
    affine.store %2, %arg1[3] : memref<1024xf32>
    return
  }
}
// -----
// loop: a store beside a sum
#map = affine_map<(d0) -> (-d0 + 500)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant dense<0.000000e+00> : vector<16xf32>
    %0 = affine.for %arg2 = 0 to 500 step 16 iter_args(%arg3 = %cst_0) -> (vector<16xf32>) {
      %3 = affine.apply #map(%arg2)
      %4 = vector.create_mask %3 : vector<16xi1>
      %5 = ub.poison : f32
      %6 = vector.transfer_read %arg0[%arg2], %5 : memref<1024xf32>, vector<16xf32>
      vector.transfer_write %6, %arg1[%arg2] : vector<16xf32>, memref<1024xf32>
      %7 = arith.select %4, %6, %cst_0 : vector<16xi1>, vector<16xf32>
      %8 = arith.addf %arg3, %7 : vector<16xf32>
      affine.yield %8 : vector<16xf32>
    }
    %1 = vector.reduction <add>, %0 : vector<16xf32> into f32
    %2 = arith.addf %1, %cst : f32
    affine.store %2, %arg1[700] : memref<1024xf32>
    return
  }
}
// -----
// loop: sums of rows
#map = affine_map<(d0) -> (-d0 + 29)>
#map1 = affine_map<(d0, d1) -> (d0 * 32 + d1)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    affine.for %arg2 = 0 to 30 {
      %cst_1 = arith.constant dense<0.000000e+00> : vector<16xf32>
      %0 = affine.for %arg3 = 0 to 29 step 16 iter_args(%arg4 = %cst_1) -> (vector<16xf32>) {
        %2 = affine.apply #map(%arg3)
        %3 = vector.create_mask %2 : vector<16xi1>
        %4 = affine.apply #map1(%arg2, %arg3)
        %5 = ub.poison : f32
        %6 = vector.transfer_read %arg0[%4], %5 : memref<1024xf32>, vector<16xf32>
        %7 = arith.select %3, %6, %cst_1 : vector<16xi1>, vector<16xf32>
        %8 = arith.addf %arg4, %7 : vector<16xf32>
        affine.yield %8 : vector<16xf32>
      }
      %1 = vector.reduction <add>, %0 : vector<16xf32> into f32
      affine.store %1, %arg1[%arg2] : memref<1024xf32>
    }
    return
  }
}
// -----
// loop: loops under a test
#map = affine_map<(d0, d1) -> (d0 * 32 + d1)>
#set = affine_set<(d0) : (d0 - 7 >= 0)>
module {
  func.func @f(%arg0: memref<1024xf32>, %arg1: memref<1024xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    affine.for %arg2 = 0 to 30 {
      affine.if #set(%arg2) {
        affine.for %arg3 = 0 to 29 step 16 {
          %0 = affine.apply #map(%arg2, %arg3)
          %1 = ub.poison : f32
          %2 = vector.transfer_read %arg0[%0], %1 : memref<1024xf32>, vector<16xf32>
          %3 = affine.apply #map(%arg2, %arg3)
          vector.transfer_write %2, %arg1[%3] : vector<16xf32>, memref<1024xf32>
        }
      }
    }
    return
  }
}
